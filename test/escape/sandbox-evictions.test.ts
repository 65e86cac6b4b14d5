import type { Client } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { mintToken } from "../../src/auth/mint-token.ts";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { openInside } from "./sandbox-lab.ts";

const SECRET = "a secret that is long enough for tests";

async function startWith(sandbox: Readonly<Record<string, unknown>>): Promise<(subject: string) => Promise<Client>> {
  const auth = { enabled: true, jwt: { secret: SECRET } };
  const server = new Server(makePlace(), { auth, sandbox });
  const url = await server.url();
  return async (subject) => {
    const token = await mintToken({ secret: SECRET, subject, scopes: [], expiresInSeconds: 600 });
    return connectHttp(url, { authorization: `Bearer ${token}` });
  };
}

test.each([
  ["sandbox.maxTotal", { maxTotal: 4 }],
  ["sandbox.maxTotalMemoryMb", { maxTotalMemoryMb: 4096 }],
])("a client at %s ends its own idle sandboxes, and none of another client", async (_limit, sandbox) => {
  const connectAs = await startWith(sandbox);
  const [ada, mallory] = [await connectAs("ada"), await connectAs("mallory")];
  const kept = await openInside(ada);
  await kept.sh("echo ada > note.txt");
  for (let count = 0; count < 5; count++) await openInside(mallory);
  const read = await kept.call("file_read", { path: "note.txt" });
  expect(read.structuredContent).toMatchObject({ content: "ada\n", session_created: false });
});

test("a client whose sandboxes are all busy ends none of a client that has fewer", async () => {
  const connectAs = await startWith({ maxTotal: 3 });
  const [ada, mallory] = [await connectAs("ada"), await connectAs("mallory")];
  const kept = await openInside(ada);
  const busy: { readonly stop: () => Promise<unknown>; readonly done: Promise<unknown> }[] = [];
  for (let count = 0; count < 2; count++) {
    const inside = await openInside(mallory);
    const done = inside.call("shell_exec", { command: "touch busy; while [ ! -e done ]; do sleep 0.05; done" });
    await expect.poll(() => inside.sh("ls busy")).toBe("busy\n");
    busy.push({ stop: () => inside.call("file_write", { path: "done", content: "" }), done });
  }
  await expect(call(mallory, "sandbox_create")).rejects.toThrow("sandbox.maxTotal");
  for (const { stop } of busy) await stop();
  await Promise.all(busy.map(({ done }) => done));
  expect((await kept.call("file_list")).structuredContent).toMatchObject({ session_created: false });
});

test("the owner of an evicted sandbox hears in the next result that it was evicted, why, and what is gone", async () => {
  const connectAs = await startWith({ maxTotal: 3 });
  const [ada, bob] = [await connectAs("ada"), await connectAs("bob")];
  const first = await openInside(ada);
  for (let count = 0; count < 2; count++) await openInside(ada);
  // Bob has none, so the client with the most loses the one that it used least recently.
  await openInside(bob);
  const next = await first.call("file_list");
  const note = String(next.structuredContent?.["note"]);
  expect(next.structuredContent).toMatchObject({ session_id: first.id, session_created: true });
  expect(note).toContain("evicted to make room for a sandbox of a client that has fewer than you");
  expect(note).toContain("sandbox.maxTotal (3)");
  expect(note).toContain("files, variables and processes are gone");
});

test("a call without session_id says so, too, when the session's sandbox was evicted", async () => {
  const connectAs = await startWith({ maxTotal: 2 });
  const [ada, again, bob] = [await connectAs("ada"), await connectAs("ada"), await connectAs("bob")];
  await call(ada, "code_run", { code: "x = 1" });
  await call(again, "code_run", { code: "x = 1" });
  await openInside(bob);
  const next = await call(ada, "code_run", { code: "1 + 1" });
  expect(next.structuredContent).toMatchObject({ value: "2", session_created: true });
  expect(next.structuredContent?.["note"]).toContain("evicted to make room");
  const later = await call(ada, "code_run", { code: "2" });
  expect(later.structuredContent).not.toHaveProperty("note");
});

test("an evicted id that cannot come back for want of room stays good", async () => {
  const connectAs = await startWith({ maxTotal: 1 });
  const [ada, bob] = [await connectAs("ada"), await connectAs("bob")];
  const first = await openInside(ada);
  const other = await openInside(bob);
  const done = other.call("shell_exec", { command: "touch busy; while [ ! -e done ]; do sleep 0.05; done" });
  await expect.poll(() => other.sh("ls busy")).toBe("busy\n");
  await expect(first.call("file_list")).rejects.toThrow("sandbox.maxTotal");
  await other.call("file_write", { path: "done", content: "" });
  await done;
  await other.call("sandbox_destroy");
  expect((await first.call("file_list")).structuredContent).toMatchObject({ session_id: first.id });
});
