import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { AUTH, PageOperator, token } from "../escape/dashboard-lab.ts";

interface Mounted {
  readonly server: Server;
  readonly ada: Client;
  readonly anna: PageOperator;
  /** What is other than at the start, by path. */
  changes(): Promise<{ readonly changes: readonly Record<string, unknown>[]; readonly truncated: boolean }>;
}

/** A server whose sandboxes work in a folder of the host. */
async function mount(files: Readonly<Record<string, string | Buffer>>, sandbox = {}): Promise<Mounted> {
  const place = makePlace();
  const folder = join(place.folder, "project");
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  const server = new Server(place, { ...AUTH, sandbox: { volumes: [folder], ...sandbox } });
  const { origin } = new URL(await server.url());
  const ada = await connectHttp(`${origin}/mcp`, { authorization: `Bearer ${await token("ada")}` });
  const anna = await PageOperator.byToken(origin, "anna");
  const changes = async (): ReturnType<Mounted["changes"]> => {
    const id = (await anna.get("now")).json.sandboxes.at(-1).id;
    const { json } = await anna.get(`sandboxes/${id}/changes`);
    return {
      ...json,
      changes: json.changes.toSorted((a: { path: string }, b: { path: string }) => (a.path < b.path ? -1 : 1)),
    };
  };
  return { server, ada, anna, changes };
}

test("files of a mounted folder are told with what was in them and what is: added, changed and removed", async () => {
  const names = ["kept.txt", "touched.txt", "edited.txt", "gone.txt", "src/gone.txt"];
  const { server, ada, changes } = await mount(Object.fromEntries(names.map((name) => [name, "old\n"])));
  const command =
    "rm -r gone.txt src; echo new > edited.txt; echo new > added.txt; mv kept.txt away; mv away kept.txt; touch touched.txt";
  await call(ada, "shell_exec", { command });
  expect(await changes()).toEqual({
    truncated: false,
    changes: [
      { path: "added.txt", change: "added", after: "new\n" },
      { path: "edited.txt", change: "changed", before: "old\n", after: "new\n" },
      { path: "gone.txt", change: "removed", before: "old\n" },
      { path: "src/gone.txt", change: "removed", before: "old\n" },
    ],
  });
  await server.stop();
});

test("a change is told though the file has the size and the time of before", async () => {
  const { server, ada, changes } = await mount({ "a.txt": "old\n", "b.bin": Buffer.from([0, 1]) });
  const command =
    "touch -r a.txt /tmp/a; echo new > a.txt; touch -r /tmp/a a.txt; touch -r b.bin /tmp/b; printf '\\0\\2' > b.bin; touch -r /tmp/b b.bin";
  await call(ada, "shell_exec", { command });
  expect((await changes()).changes).toEqual([
    { path: "a.txt", change: "changed", before: "old\n", after: "new\n" },
    { path: "b.bin", change: "changed", beforeMissing: "binary", afterMissing: "binary" },
  ]);
  await server.stop();
});

test("what was too large, no text or too much to be kept is said to be so", async () => {
  const large = "x".repeat(65_537);
  // 200 texts of 64 KiB are more than 8 MiB.
  const many = Object.fromEntries(
    Array.from({ length: 200 }, (_, at) => [`many/${1000 + at}.txt`, `${at}`.padEnd(65_536)]),
  );
  const files = { "binary.dat": Buffer.from([1, 0, 2]), "just.txt": large.slice(1), "large.txt": large, ...many };
  const { server, ada, changes } = await mount(files);
  await call(ada, "shell_exec", { command: "rm *.dat *.txt; rm many/1000.txt many/1199.txt" });
  expect((await changes()).changes).toEqual([
    { path: "binary.dat", change: "removed", beforeMissing: "binary" },
    { path: "just.txt", change: "removed", before: large.slice(1) },
    { path: "large.txt", change: "removed", beforeMissing: "large" },
    { path: "many/1000.txt", change: "removed", before: "0".padEnd(65_536) },
    { path: "many/1199.txt", change: "removed", beforeMissing: "full" },
  ]);
  await server.stop();
});

test("each sandbox of a folder has a start of its own, a warm one when it is claimed, and one started again keeps its", async () => {
  const { server, ada, changes } = await mount({ "a.txt": "one\n" }, { pool: { size: 1 } });
  const first = await call(ada, "sandbox_create");
  const session_id = first.structuredContent?.["session_id"];
  await call(ada, "shell_exec", { session_id, command: "echo two > a.txt" });
  expect((await changes()).changes).toEqual([{ path: "a.txt", change: "changed", before: "one\n", after: "two\n" }]);
  // The guest itself is ended: the sandbox begins again on the same files.
  await call(ada, "shell_exec", { session_id, command: "kill -9 -1" }).catch(() => undefined);
  await call(ada, "shell_exec", { session_id, command: "echo three > a.txt" });
  expect((await changes()).changes).toEqual([{ path: "a.txt", change: "changed", before: "one\n", after: "three\n" }]);
  await call(ada, "sandbox_destroy", { session_id });
  await call(ada, "sandbox_create");
  await call(ada, "shell_exec", { command: "echo four > b.txt" });
  expect((await changes()).changes).toEqual([{ path: "b.txt", change: "added", after: "four\n" }]);
  await server.stop();
});

test("many changes come without more text than a page can hold", async () => {
  const { server, ada, changes } = await mount({ "a.txt": "a" });
  await call(ada, "shell_exec", { command: "for i in $(seq 100 699); do echo $i > $i.txt; done" });
  const { changes: told, truncated } = await changes();
  expect([told.length, truncated]).toEqual([500, true]);
  expect(told.filter(({ after }) => after !== undefined).length).toBe(50);
  expect(told.at(-1)).toMatchObject({ change: "added", afterMissing: "many" });
  await server.stop();
});
