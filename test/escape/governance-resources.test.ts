import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { assembleGoverned } from "../integration/assembled-lab.ts";

/** Ways around a policy for `file_read`: the same file as a resource, under as many URIs as there are pages. */
async function governed(governance: Record<string, unknown>) {
  const { pipeline, call } = await assembleGoverned({ governance });
  return { pipeline, call, read: (uri: string) => pipeline.readResource(uri, call) };
}

const PASSED = { kind: "resource_not_found" };

test("a scope that is denied is denied for the files of sandboxes as resources", async () => {
  const { pipeline, call, read } = await governed({ defaults: { deny: ["scope:workspace"] } });
  await expect(read("sandbox://anything/secret.txt")).rejects.toMatchObject({
    kind: "governance_denied",
    facts: { rule: "defaults.deny" },
  });
  expect(pipeline.view.templates(call.caller)).toEqual([]);
  await expect(pipeline.subscribe("sandbox://anything/secret.txt", call)).rejects.toThrow("refuses");
});

test("a subscription is on record once a minute, a refused one as a refusal, and the id of a sandbox in neither", async () => {
  const id = randomBytes(32).toString("base64url");
  const { pipeline, call } = await governed({ defaults: { deny: ["sandbox://*/secret*"] } });
  for (const page of [1, 2, 3]) await pipeline.subscribe(`sandbox://${id}/open.txt?offset=${page}`, call);
  await expect(pipeline.subscribe(`sandbox://${id}/secret.txt`, call)).rejects.toThrow("refuses");
  const rows = (await pipeline.governance?.ledger.reader.list({}, { limit: 10 })) ?? [];
  expect(rows.map(({ kind, called_as, outcome, rule }) => [kind, called_as, outcome, rule])).toEqual([
    ["resource", "resources/subscribe", "refused", "defaults.deny"],
    ["list", "resources/subscribe", "ok", "default"],
  ]);
  expect(JSON.stringify(rows)).not.toContain(id);
});

test.each([
  ["the tool and the path", 'tool == "file_read" && args.path.startsWith("secret")'],
  ["the tool and the page", 'tool == "file_read" && has(args.offset) && args.offset >= 0'],
  ["the scope and the sandbox", 'scope == "workspace" && args.session_id == "anything"'],
])("a rule on %s sees a read of the file as a resource", async (_what, when) => {
  const { read } = await governed({ rules: [{ id: "closed", when, effect: "deny" }] });
  const refused = { kind: "governance_denied", facts: { rule: "rules.closed" } };
  await expect(read("sandbox://anything/secret.txt?offset=0")).rejects.toMatchObject(refused);
  await expect(read("sandbox://anything/%73ecret.txt?offset=7&length=9")).rejects.toMatchObject(refused);
  await expect(read("sandbox://other/open.txt")).rejects.toMatchObject(PASSED);
});

test("a rule that refuses the tool whatever its arguments takes the files out of the list", async () => {
  const rules = [{ id: "closed", when: 'tool == "file_read"', effect: "deny" }];
  const { pipeline, call } = await governed({ rules });
  expect(pipeline.view.templates(call.caller)).toEqual([]);
});

test("calls of the tool, of other paths and of other pages are one count", async () => {
  const { pipeline, call, read } = await governed({ tools: { file_read: { callsPerMinute: 3 } } });
  const tool = pipeline.registry.tool("file_read");
  if (tool === undefined) throw new Error("the tool is there");
  await pipeline.callTool(tool, { session_id: "anything", path: "a" }, call).catch(() => undefined);
  await expect(read("sandbox://anything/a")).rejects.toMatchObject(PASSED);
  await expect(read("sandbox://anything/a?offset=1")).rejects.toMatchObject(PASSED);
  const refused = { kind: "governance_denied", facts: { rule: "tools.file_read.callsPerMinute", used: 3 } };
  await expect(read("sandbox://anything/b")).rejects.toMatchObject(refused);
  await expect(read("sandbox://other/a?offset=2")).rejects.toMatchObject(refused);
});

test("what is limited by a pattern over the URIs of a template is one count", async () => {
  const { pipeline, read } = await governed({ tools: { "orders://*": { callsPerMinute: 2 } } });
  pipeline.registry.addResource({ uri: "orders://{id}", name: "order", read: () => "an order" });
  await read("orders://1");
  await read("orders://2");
  await expect(read("orders://3")).rejects.toMatchObject({ facts: { rule: "tools.orders://*.callsPerMinute" } });
});

test("a page that is no number is the caller's mistake, and counts", async () => {
  const { read } = await governed({ defaults: { callsPerMinute: 1 } });
  await expect(read("sandbox://anything/a?offset=x")).rejects.toMatchObject({ kind: "invalid_params" });
  await expect(read("sandbox://anything/a")).rejects.toMatchObject({ kind: "governance_denied" });
});

const HALF_THE_TIME = { defaults: { monthlyBudget: 150 }, tools: { "*": { cost: { perSecond: 1 } } } };
const TOO_LITTLE = { kind: "governance_denied", facts: { rule: "defaults.monthlyBudget", reason: "budget" } };

test("what a read, a prompt or a file may cost in its time is set aside before it runs, as it is for a tool", async () => {
  const { pipeline, call, read } = await governed(HALF_THE_TIME);
  await expect(read("sandbox://anything/data.txt")).rejects.toMatchObject(TOO_LITTLE);
  for (const subject of [
    pipeline.view.subjectOfPrompt("question"),
    pipeline.view.subjectOfOperation("file_write", "workspace"),
  ]) {
    const work = { kind: "tool", subject, calledAs: "x", args: {}, call, check: () => ({}) } as const;
    await expect(pipeline.govern({ ...work, perform: () => Promise.resolve() })).rejects.toMatchObject(TOO_LITTLE);
  }
});

test("a hidden tool is refused under the name that it was called by: another would tell that there is something", async () => {
  const { pipeline, call } = await governed({ defaults: { visible: ["file_*"] } });
  for (const name of ["nonsense", "shell_exec", "execute_command", "shell.exec", "code.exec", "get_sessions"])
    await expect(pipeline.findTool(name, call, {})).rejects.toMatchObject({
      kind: "governance_denied",
      message: `the policy refuses the tool "${name}"`,
      facts: { rule: "defaults.visible" },
    });
});
