import type { Client } from "@modelcontextprotocol/client";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { call, connect, connectStdio, makePlace, readText, type TransportName } from "./sandbox-client.ts";

/** Behind both transports is one engine (docs/decisions/023): in a short run each dialect has one of them. */
const transportsOf = (first: TransportName, second: TransportName): readonly TransportName[] =>
  process.env["OWLCLAW_TEST_LONG"] === "1" ? [first, second] : [first];

test("[002-list] the native tools are listed alone, each with a description and an input schema", async () => {
  const client = await connectStdio(makePlace());
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual([
    "browser_click",
    "browser_goto",
    "browser_screenshot",
    "browser_snapshot",
    "browser_type",
    "code_run",
    "file_list",
    "file_read",
    "file_replace",
    "file_search",
    "file_write",
    "sandbox_create",
    "sandbox_destroy",
    "sandbox_list",
    "shell_exec",
    "shell_kill",
    "shell_output",
  ]);
  const facts = tools.map(({ name, title, description, inputSchema, outputSchema, annotations }) => ({
    name,
    hasTitle: title !== undefined,
    isDescribed: (description?.length ?? 0) > 80,
    input: inputSchema.type,
    output: outputSchema?.type,
    hints: Object.values(annotations ?? {}).filter((hint) => typeof hint === "boolean").length,
    takesSession: "session_id" in (inputSchema.properties ?? {}),
  }));
  expect(facts).toEqual(
    tools.map(({ name }) => ({
      name,
      hasTitle: true,
      isDescribed: true,
      input: "object",
      output: "object",
      hints: 4,
      takesSession: name !== "sandbox_create",
    })),
  );
});

test("toolsets leave the others out, and dialects choose the names in the list", async () => {
  const client = await connectStdio(makePlace(), {
    tools: { toolsets: ["code", "shell"], dialects: ["open-sandbox"] },
  });
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["code.exec", "shell.exec"]);
  await expect(call(client, "file_read", { path: "a" })).rejects.toThrow('there is no tool named "file_read"');
  expect((await call(client, "code_run", { code: "1" })).isError).toBeUndefined();
});

describe.each(transportsOf("http", "stdio"))("the microsandbox dialect over %s", (transport) => {
  let client: Client;
  let shared: string;

  beforeAll(async () => {
    const place = makePlace();
    shared = join(place.folder, "shared");
    mkdirSync(shared);
    client = await connect(transport, place, {
      tools: { dialects: ["microsandbox"] },
      sandbox: { volumes: [`${shared}:/data:ro`] },
    });
  });

  test("[001-tools] the five tools have the schemas, enums and defaults of the design", async () => {
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "execute_code",
      "execute_command",
      "get_sessions",
      "get_volume_path",
      "stop_session",
    ]);
    const template = { type: "string", description: "Sandbox template", enum: ["python", "node"], default: "python" };
    const flavor = { type: "string", enum: ["small", "medium", "large"], default: "small" };
    const session_id = { type: "string", description: "Optional session ID" };
    expect(tools[0]?.inputSchema).toEqual({
      type: "object",
      properties: { code: { type: "string", description: "Code to execute" }, template, session_id, flavor },
      required: ["code"],
    });
    expect(tools[1]?.inputSchema).toEqual({
      type: "object",
      properties: { command: { type: "string", description: "Command to execute" }, template, session_id, flavor },
      required: ["command"],
    });
    expect(tools[4]?.inputSchema["required"]).toEqual(["session_id"]);
  });

  test("[000-R3.1] [001-result] execute_code gives stdout verbatim, and says which session it was", async () => {
    const made = await call(client, "execute_code", { code: "x = 5\nprint('  a\\n\\nb  ')" });
    expect(made).toMatchObject({
      isError: false,
      session_created: true,
      session_id: expect.stringMatching(/^[\w-]{32}$/),
    });
    expect(made.content).toEqual([{ type: "text", text: "  a\n\nb  \n" }]);
    expect(made["execution_time_ms"]).toBeTypeOf("number");
    const next = await call(client, "execute_code", { code: "print(x)", session_id: made["session_id"] });
    expect(next).toMatchObject({ content: [{ text: "5\n" }], session_created: false, session_id: made["session_id"] });
    const failed = await call(client, "execute_code", {
      code: "print('so far')\nraise ValueError('no')",
      session_id: made["session_id"],
    });
    expect(failed).toMatchObject({ isError: true, session_id: made["session_id"] });
    expect(failed.content[0]).toEqual({ type: "text", text: "so far\n" });
    expect(failed.content.at(-1)?.text).toMatch(/^execute_code failed: ValueError: no\nhint: /);
  });

  test("execute_code runs the language of its template", async () => {
    const result = await call(client, "execute_code", { code: "console.log(typeof process)", template: "node" });
    expect(result).toMatchObject({ content: [{ text: "object\n" }], isError: false });
  });

  test("[000-R3.2] execute_command runs a command", async () => {
    const result = await call(client, "execute_command", { command: "echo $((6 * 7)); echo oops >&2" });
    expect(result.content).toEqual([
      { type: "text", text: "42\n" },
      { type: "text", text: "oops\n" },
    ]);
    expect(await call(client, "execute_command", { command: "exit 4" })).toMatchObject({ isError: true });
  });

  test("[000-R3.3] [000-R3.4] get_sessions lists a session until stop_session stops it", async () => {
    const { session_id } = await call(client, "execute_code", { code: "1", flavor: "medium" });
    const ids = async (): Promise<unknown[]> =>
      ((await call(client, "get_sessions"))["sessions"] as { session_id: string }[]).map(
        (session) => session.session_id,
      );
    expect(await ids()).toContain(session_id);
    expect(await call(client, "stop_session", { session_id })).toMatchObject({
      isError: false,
      success: true,
      session_id,
    });
    expect(await ids()).not.toContain(session_id);
    expect(await call(client, "execute_code", { code: "1", session_id })).toMatchObject({ isError: true });
  });

  test("[000-R3.5] get_volume_path gives the volume mappings", async () => {
    expect(await call(client, "get_volume_path")).toMatchObject({
      volume_mappings: [{ host_path: shared, container_path: "/data", read_only: true }],
    });
    const tried = await call(client, "execute_command", { command: "touch /data/x" });
    expect(tried).toMatchObject({ isError: true });
    expect(tried.content[1]?.text).toContain("Read-only file system");
  });

  test("native names can be called though they are not listed", async () => {
    expect((await call(client, "code_run", { code: "1 + 1" })).structuredContent).toMatchObject({ value: "2" });
  });
});

describe.each(transportsOf("stdio", "http"))("the open-sandbox dialect over %s", (transport) => {
  let client: Client;

  beforeAll(async () => {
    client = await connect(transport, makePlace(), { tools: { dialects: ["open-sandbox"] } });
  });

  test("[003-US3.1] [003-FR-004] [003-SC-003] file.write then file.read, list, search and replace", async () => {
    await call(client, "file.write", { path: "notes/a.txt", content: "first\nsecond\n" });
    expect((await call(client, "file.read", { path: "notes/a.txt" })).structuredContent).toMatchObject({
      content: "first\nsecond\n",
    });
    expect((await call(client, "file.list", { path: "notes" })).structuredContent).toMatchObject({
      entries: [{ path: "notes/a.txt" }],
    });
    expect((await call(client, "file.search", { pattern: "sec" })).structuredContent).toMatchObject({
      matches: [{ line: 2 }],
    });
    await call(client, "file.replace", { path: "notes/a.txt", old_text: "second", new_text: "third" });
    expect((await call(client, "file.read", { path: "/workspace/notes/a.txt" })).structuredContent).toMatchObject({
      content: "first\nthird\n",
    });
  });

  test("[003-US3.2] [003-FR-005] [003-SC-004] shell.exec echo test gives stdout, stderr and the exit code", async () => {
    const { structuredContent } = await call(client, "shell.exec", { command: "echo test" });
    expect(structuredContent).toMatchObject({ stdout: "test\n", stderr: "", exit_code: 0 });
    expect(readText(await call(client, "shell.exec", { command: "echo bad >&2; exit 9" })).json).toMatchObject({
      stderr: "bad\n",
      exit_code: 9,
    });
  });

  test("[003-US3.3] [003-FR-006] [003-SC-005] code.exec processes a file and writes its output in the workspace", async () => {
    await call(client, "file.write", { path: "in.txt", content: "3\n4\n" });
    const code = "total = sum(int(line) for line in open('in.txt'))\nopen('out.txt', 'w').write(str(total))";
    expect((await call(client, "code.exec", { code })).structuredContent).toMatchObject({ status: "ok" });
    expect((await call(client, "file.read", { path: "out.txt" })).structuredContent).toMatchObject({ content: "7" });
  });
});
