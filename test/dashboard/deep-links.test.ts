import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import { DashboardServer, Operator } from "./page-lab.ts";

const SKILLS = ["refund", "invoice"];

let server: DashboardServer;
let ada: Client;
let anna: Operator;

beforeAll(async () => {
  const governance: Readonly<Record<string, unknown>> = {
    tools: { file_write: { confirm: "operator" } },
    groups: { interns: { deny: [{ match: "shell_exec", reason: "not for interns" }] } },
    labels: { bot: { deny: [{ match: "code_run", reason: "not for bots" }] } },
    rules: [
      {
        id: "level",
        when: 'tool == "file_read" && has(claims.level) && claims.level < 3',
        effect: "deny",
        reason: "level 3 is needed",
      },
    ],
  };
  server = new DashboardServer({ governance, skills: { dir: "./skills" } });
  for (const name of SKILLS) {
    const folder = join(server.place.folder, "skills", name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "SKILL.md"), `---\nname: ${name}\ndescription: About ${name}.\n---\nRead me.\n`);
  }
  await server.start();
  ada = await server.client("ada");
  await call(ada, "sandbox_list");
  anna = await Operator.signIn(server);
});
// Each for itself: what one complains about must not leave the other behind.
afterAll(() => server.stop());
afterAll(() => anna.leave());

/** Somebody else opens what stands in the address of this page. */
async function openedElsewhere(): Promise<Operator> {
  const other = await Operator.signIn(server, { name: "bob" });
  await other.page.goto(anna.page.url());
  return other;
}

test("a question to the policy stands in the address, with groups, claims and label, and is answered there", async () => {
  await anna.open("/policy?client=ada");
  const form = anna.page.getByRole("region", { name: "What would the policy say?" });
  const ask = async (fields: Readonly<Record<string, string>>): Promise<string> => {
    for (const [name, value] of Object.entries(fields)) await form.getByLabel(name).fill(value);
    await form.getByRole("button", { name: "Explain" }).click();
    await form.getByRole("status").getByText("by rule").waitFor();
    return await form.getByRole("status").innerText();
  };
  expect(await ask({ Tool: "shell_exec" })).toMatch(/^allow/);
  expect(await ask({ "Groups, with commas": "people, interns" })).toContain("not for interns");
  expect(await ask({ Tool: "code_run", Label: "bot" })).toContain("not for bots");
  const asked = { Tool: "file_read", "Claims of the token, as JSON": '{"level": 2}' };
  expect(await ask({ ...asked, "Arguments, as JSON": '{"path": "a.txt"}' })).toContain("level 3 is needed");
  // The table below is for the same caller.
  await anna.shows("With the groups, claims and label given above.");
  await anna.page.getByRole("row", { name: /shell_exec.*not for interns/ }).waitFor();
  const other = await openedElsewhere();
  await other.shows("level 3 is needed");
  expect(await other.page.getByLabel("Arguments, as JSON").inputValue()).toBe('{"path": "a.txt"}');
  await other.page.getByRole("row", { name: /code_run.*not for bots/ }).waitFor();
  await other.page.getByRole("link", { name: "ada", exact: true }).click();
  await other.shows("Without groups, claims or a label");
  await other.page.getByRole("row", { name: /shell_exec yes allow/ }).waitFor();
  await other.leave();
});

test("one call that waits, a changed file and what is left of a sandbox have addresses", async () => {
  const session = { session_id: String((await call(ada, "sandbox_create")).structuredContent?.["session_id"]) };
  const many = "for n in $(seq 30); do echo $n > file-$n.txt; done";
  await call(ada, "shell_exec", { ...session, command: many });
  await anna.open("");
  const shown = await anna.page.getByRole("link", { name: /^owl-/ }).innerText();
  const writing = ["one", "two"].map((name) =>
    call(ada, "file_write", { ...session, path: `${name}.txt`, content: name }).catch(String),
  );
  await anna.open("/approvals");
  await expect.poll(() => anna.page.getByRole("article").count(), { timeout: 20_000 }).toBe(2);
  await anna.page
    .getByRole("article")
    .filter({ hasText: "two.txt" })
    .getByRole("link", { name: "address of this call" })
    .click();
  await expect.poll(() => anna.page.getByRole("article").count()).toBe(1);
  const other = await openedElsewhere();
  await other.page.getByRole("article").getByText("two.txt").first().waitFor();
  await other.page.getByRole("button", { name: "Deny" }).click();
  await anna.shows("This call does not wait any more.");
  await anna.page.getByRole("link", { name: "All that wait" }).click();
  await anna.page.getByRole("button", { name: "Deny" }).click();
  await Promise.all(writing);

  await anna.open(`/sandboxes/${shown}/changes`);
  const summary = anna.page.locator("summary", { hasText: "file-9.txt" });
  await summary.click();
  await anna.page.waitForURL(/path=/);
  await other.page.goto(anna.page.url());
  await expect
    .poll(() => other.page.locator("summary[aria-current]").innerText(), { timeout: 20_000 })
    .toContain("file-9.txt");
  const top = "document.querySelector('summary[aria-current]').getBoundingClientRect().top";
  expect(await other.page.evaluate<number>(top)).toBeLessThan(900);
  await other.page
    .getByRole("group", { name: /file-9\.txt/ })
    .last()
    .waitFor();

  await call(ada, "sandbox_destroy", session);
  await other.open(`/sandboxes/${shown}`);
  await other.page.getByRole("link", { name: "its rows of the ledger" }).click();
  await other.page.waitForURL(/ledger\?sandbox=/);
  await other.page.getByRole("table").getByRole("cell", { name: "shell_exec" }).first().waitFor();
  expect(await other.page.getByRole("table").getByRole("cell", { name: "sandbox_list" }).count()).toBe(0);
  await other.open("/sandboxes/owl-00000000000000000000");
  await other.shows("It is not known any more which rows are its own");
  await other.leave();
});

test("tools that were looked for, and one skill, have addresses", async () => {
  await anna.open("/tools");
  await anna.page.getByLabel("Filter tools").fill("browser");
  const other = await openedElsewhere();
  await other.page.getByRole("link", { name: "browser_goto" }).waitFor();
  expect(await other.page.getByRole("link", { name: "shell_exec" }).count()).toBe(0);
  await anna.open("/skills");
  await anna.page.getByRole("link", { name: "invoice" }).click();
  await anna.page.getByRole("heading", { level: 1, name: "Skill invoice" }).waitFor();
  await other.page.goto(anna.page.url());
  await other.shows("About invoice.");
  expect(await other.page.getByText("About refund.").count()).toBe(0);
  expect(await other.obstacles()).toEqual([]);
  await other.open("/skills/none");
  await other.shows("There is no skill of this name.");
  await other.leave();
});
