import { renameSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { assembleGoverned } from "./assembled-lab.ts";

async function governed(defaults: Record<string, unknown>) {
  const tools = { dialects: ["native", "microsandbox", "open-sandbox"] };
  const { pipeline, call, root } = await assembleGoverned({ tools, governance: { defaults } });
  return { pipeline, call, root, names: () => pipeline.visibleTools(call.caller).map(({ name }) => name) };
}

test.each([
  ["shell_exec", ["shell_exec", "shell.exec", "execute_command"]],
  ["shell.exec", ["shell_exec", "shell.exec", "execute_command"]],
  ["execute_command", ["shell_exec", "shell.exec", "execute_command"]],
  ["execute_code", ["code_run", "code.exec", "execute_code"]],
  ["sandbox_destroy", ["sandbox_destroy", "stop_session"]],
  ["get_sessions", ["sandbox_list", "get_sessions"]],
  ["file_write", ["file_write", "file.write"]],
])("a policy that hides %s hides the operation under every name", async (hidden, names) => {
  const { pipeline, call, names: listed } = await governed({ hidden: [hidden] });
  for (const name of names) {
    expect(listed()).not.toContain(name);
    await expect(pipeline.findTool(name, call, {})).rejects.toMatchObject({
      kind: "governance_denied",
      facts: { rule: "defaults.hidden" },
    });
  }
  expect(listed()).toContain("file_read");
});

test("files as resources go with file_read", async () => {
  const { pipeline, call } = await governed({ deny: ["file.read"] });
  expect(pipeline.view.templates(call.caller)).toEqual([]);
  await expect(pipeline.readResource("sandbox://anything/secret.txt", call)).rejects.toMatchObject({
    kind: "governance_denied",
  });
});

test("[004-R8.1] the same list comes back until policy or tools change", async () => {
  const { pipeline, call } = await governed({});
  expect(pipeline.visibleTools(call.caller)).toBe(pipeline.visibleTools(call.caller));
});

test("a store that is gone refuses calls, and says that it is worth trying again", async () => {
  const { pipeline, call, root } = await governed({});
  const tool = pipeline.registry.tool("get_volume_path");
  if (tool === undefined || pipeline.governance === undefined) throw new Error("the tool is there");
  expect(await pipeline.callTool(tool, {}, call)).toMatchObject({ isError: false });
  renameSync(join(root, "ledger.db"), join(root, "gone.db"));
  const refused = { kind: "store_unavailable", retryable: true };
  await expect(pipeline.callTool(tool, {}, call)).rejects.toMatchObject(refused);
  await expect(pipeline.callTool(tool, {}, call)).rejects.toMatchObject(refused);
});
