import { beforeAll, expect, test } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import { type Busy, HOSTILE_NAME, startBusy } from "./busy-server.ts";
import { HOSTILE, Operator } from "./page-lab.ts";

let busy: Busy;
beforeAll(async () => {
  busy = await startBusy();
});

/** Addresses of all views, with what they show when they are complete. */
function views(id: string): readonly (readonly [string, string | RegExp])[] {
  const file = encodeURIComponent(`/workspace/a${HOSTILE_NAME}.txt`);
  return [
    ["", id],
    [`/sandboxes/${id}`, "Your shell"],
    [`/sandboxes/${id}/cells`, "result"],
    [`/sandboxes/${id}/files?path=${file}`, "<script>globalThis.owned=1</script>"],
    [`/sandboxes/${id}/changes`, `a${HOSTILE_NAME}.txt`],
    [`/sandboxes/${id}/processes`, HOSTILE_NAME],
    // What is no host is not repeated.
    [`/sandboxes/${id}/network`, "malformed request"],
    [`/sandboxes/${id}/browser`, "file:///workspace/"],
    ["/approvals", "wants to call"],
    ["/ledger", "shell_exec"],
    ["/ledger?client=nobody", "No call matches."],
    ["/ledger/3", "Place in the chain"],
    ["/spend", "expected at the end of the month"],
    ["/policy", "sees and may do"],
    ["/tools", "code_run"],
    ["/tools/greet", "Try it"],
    ["/skills", "Pays back."],
    ["/nonsense", "Nothing is at this address."],
    ["/constructor", "Nothing is at this address."],
  ];
}

test("every view is usable by everybody in both themes, takes no text for markup, and the browser has nothing to complain about", async () => {
  const waiting = call(busy.eve, "file_write", {
    session_id: busy.sandbox,
    path: `${HOSTILE_NAME}.txt`,
    content: HOSTILE,
  });
  // It waits until it is denied at the end.
  const answered = waiting.then(() => "it was written", String);
  const anna = await Operator.signIn(busy.server);
  const id = await anna.page.getByRole("table", { name: "Sandboxes" }).getByRole("link").first().innerText();
  await anna.page.getByRole("region", { name: "Paused clients" }).getByText(HOSTILE).waitFor();
  const found: string[] = [];
  for (const [path, text] of views(id)) {
    await anna.open(path);
    await anna.shows(text).catch(() => found.push(`${path} does not show ${text.toString()}`));
    const obstacles = [...(await anna.obstacles()), ...(await anna.obstaclesInTheDark())];
    found.push(...obstacles.map((obstacle) => `${path} ${obstacle}`));
    if (await anna.isOwned()) found.push(`${path} ran what it should have shown`);
    await expect.poll(() => anna.page.title(), { message: path }).toMatch(/^\(1\) .* · OwlClaw$/);
  }
  expect([...found, ...anna.problems]).toEqual([]);
  await anna.open("/approvals");
  await anna.page.getByRole("button", { name: "Deny" }).click();
  await anna.shows("Nothing waits for a decision.");
  expect(await answered).toMatch(/said no/);
  await anna.leave();
});
