import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { AUTH, PageOperator, token } from "../escape/dashboard-lab.ts";
import { until } from "./harness.ts";

let server: Server;
let ada: Client;
let anna: PageOperator;

beforeAll(async () => {
  const confirm = "operator";
  const governance = { tools: { file_write: { confirm }, file_replace: { confirm } } };
  server = new Server(makePlace(), { ...AUTH, governance });
  const { origin } = new URL(await server.url());
  ada = await connectHttp(`${origin}/mcp`, { authorization: `Bearer ${await token("ada")}` });
  anna = await PageOperator.byToken(origin, "anna");
});
afterAll(() => server.stop());

/** What an operator is shown before the call, which is refused afterwards. */
async function shownFor(tool: string, args: Readonly<Record<string, unknown>>): Promise<unknown> {
  const answered = call(ada, tool, args).then(() => "it was done", String);
  const { json } = await until(
    () => anna.get("approvals"),
    ({ json: { approvals } }) => approvals.length === 1,
  );
  const [{ id, change }] = json.approvals;
  await anna.post(`approvals/${id}`, { decision: "deny" });
  expect(await answered).toMatch(/said no/);
  return change;
}

test("a file that is there is never shown as new, however it is asked for and whether it can be read or not", async () => {
  const make = "seq 20000 > large.txt; printf '\\0\\1\\377' > some.bin; printf 'old\\n' > a.txt; mkdir folder";
  const { structuredContent } = await call(ada, "shell_exec", { command: make });
  const write = (path: string, more = {}): Promise<unknown> =>
    shownFor("file_write", { path, content: "x\n", ...more });
  const named = { session_id: structuredContent?.["session_id"] };
  for (const more of [{}, named]) {
    expect(await write("a.txt", more)).toEqual({ path: "a.txt", before: "old\n", after: "x\n" });
    expect(await write("new.txt", more)).toEqual({ path: "new.txt", after: "x\n" });
  }
  expect(await write("large.txt")).toEqual({ path: "large.txt", beforeMissing: "large", after: "x\n" });
  expect(await write("some.bin")).toEqual({ path: "some.bin", beforeMissing: "binary", after: "x\n" });
  expect(await write("folder")).toEqual({ path: "folder", beforeMissing: "gone", after: "x\n" });
  const part = { beforeMissing: "large", isPart: true };
  expect(await write("large.txt", { mode: "append" })).toEqual({ path: "large.txt", after: "x\n", ...part });
  expect(await shownFor("file_replace", { path: "large.txt", old_text: "7\n", new_text: "8\n" })).toEqual({
    path: "large.txt",
    before: "7\n",
    after: "8\n",
    ...part,
  });
  await call(ada, "sandbox_destroy");
  expect(await write("a.txt")).toEqual({ path: "a.txt", beforeMissing: "unknown", after: "x\n" });
});
