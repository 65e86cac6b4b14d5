import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, startHttp } from "./harness.ts";
import { HttpSession, modern, postJson, SseLine } from "./http-client.ts";
import { StdioLine } from "./stdio-line.ts";
import { expectedData, type JsonRpcAnswer, MODERN, text } from "./wire-messages.ts";

type Ask = (method: string, params?: Record<string, unknown>) => Promise<JsonRpcAnswer>;

interface Line {
  readonly ask: Ask;
  close(): Promise<void>;
}

let server: HttpServer;

beforeAll(async () => {
  server = await startHttp();
});

afterAll(() => server.stop());

const OLD = ["2024-11-05", "2025-03-26", "2025-06-18"];

const DOORS = [
  ...["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN].flatMap((version) => [
    { transport: "stdio", version },
    { transport: "http", version },
  ]),
  { transport: "plain http", version: "2025-03-26" },
  { transport: "sse", version: "2024-11-05" },
  { transport: "sse", version: "2025-11-25" },
];

/** Opens a line without any client library, so that what is asserted is what went over the wire. */
async function openLine(transport: string, version: string): Promise<Line> {
  if (transport === "stdio") {
    const line = new StdioLine();
    if (version === MODERN) return { ask: (method, params) => line.modernRequest(method, params), close: () => line.finish() };
    expect((await line.initialize(version)).result?.["protocolVersion"]).toBe(version);
    return { ask: (method, params) => line.request(method, params), close: () => line.finish() };
  }
  if (transport === "sse") {
    const line = await SseLine.open(server.origin);
    expect((await line.initialize(version)).result?.["protocolVersion"]).toBe(version);
    return { ask: (method, params) => line.request(method, params), close: async () => line.stream.close() };
  }
  if (transport === "plain http") {
    const ask: Ask = async (method, params = {}) =>
      (await postJson(server.url, { jsonrpc: "2.0", id: "p", method, params })).body;
    return { ask, close: async () => undefined };
  }
  if (version === MODERN) {
    const ask: Ask = async (method, params) => (await modern(server.url, method, params)).body;
    return { ask, close: async () => undefined };
  }
  const session = await HttpSession.open(server.url, { version });
  const ask: Ask = async (method, params) => (await session.request(method, params)).body;
  return { ask, close: async () => void (await session.delete()) };
}

describe.each(DOORS)("errors over $transport in $version", ({ transport, version }) => {
  let line: Line;
  const isModern = version === MODERN;
  const isOld = OLD.includes(version);

  // Opened in the first test, because a stream belongs to the test that opened it.
  const call = async (name: string, args: Record<string, unknown> = {}): Promise<JsonRpcAnswer> =>
    line.ask("tools/call", { name, arguments: args });

  test("have the code of the era, and kind, trace id and retryable in data", async () => {
    line = await openLine(transport, version);

    const unknownMethod = await line.ask("no/such");
    expect(unknownMethod.error, "method_not_found").toMatchObject({
      code: -32601,
      data: expectedData("method_not_found", { retryable: false }),
    });

    const unknownTool = await call("nobody");
    expect(unknownTool.error, "tool_not_found").toMatchObject({
      code: isModern ? -32602 : -32001,
      message: expect.stringContaining("nobody"),
      data: expectedData("tool_not_found", { retryable: false }),
    });

    const unknownResource = await line.ask("resources/read", { uri: "fixture://nothing" });
    expect(unknownResource.error, "resource_not_found").toMatchObject({
      code: isModern ? -32602 : -32002,
      data: expectedData("resource_not_found", { retryable: false, uri: "fixture://nothing" }),
    });

    const unknownPrompt = await line.ask("prompts/get", { name: "nothing" });
    expect(unknownPrompt.error, "prompt_not_found").toMatchObject({
      code: -32602,
      data: expectedData("prompt_not_found", { retryable: false }),
    });

    const badParams = await line.ask("tools/call", { name: 7 });
    expect(badParams.error, "invalid_params").toMatchObject({
      code: -32602,
      data: expectedData("invalid_params", { retryable: false }),
    });

    const badCursor = await line.ask("tools/list", { cursor: "bad" });
    expect(badCursor.error, "bad cursor").toMatchObject({ code: -32602, data: expectedData("invalid_params") });

    const badArguments = await call("typed", { text: "x", count: 11, items: [{}] });
    expectFailure(badArguments, { kind: "invalid_params", code: isOld ? -32602 : undefined, retryable: false });
    expect(JSON.stringify(badArguments)).toMatch(/count/);
    expect(JSON.stringify(badArguments)).toMatch(/items\[0\]/);

    expectFailure(await call("fail_as", { kind: "internal" }), { kind: "internal", code: -32603, retryable: true });
    expectFailure(await call("fail_as", { kind: "resource_limit" }), {
      kind: "resource_limit",
      code: isModern ? undefined : -32600,
      retryable: true,
    });
    expectFailure(await call("dawdle"), { kind: "timeout", code: isModern ? undefined : -32004, retryable: true });
    expectFailure(await call("fail", { message: "kaput" }), {
      kind: "execution_error",
      code: isModern ? undefined : -32005,
      retryable: false,
      message: "kaput",
    });
    expectFailure(await call("break_own_schema"), {
      kind: "execution_error",
      code: isModern ? undefined : -32005,
      retryable: false,
    });
    expectFailure(await call("fail_as", { kind: "session_not_found" }), {
      kind: "session_not_found",
      code: undefined,
      retryable: false,
    });
    expectFailure(await line.ask("resources/read", { uri: "fixture://broken" }), {
      kind: "execution_error",
      code: isModern ? -32005 : -32005,
      retryable: false,
      message: "cannot be read today",
    });

    const refused = await call("refuse");
    expect(refused.result).toMatchObject({ content: [{ type: "text", text: "no luck" }], isError: true });
    await line.close();
  });
});

/** A protocol error with the code, or, without one, a result that a model can read. Its data are the same. */
function expectFailure(
  answer: JsonRpcAnswer,
  { kind, code, retryable, message }: { kind: string; code: number | undefined; retryable: boolean; message?: string },
): void {
  const data = expectedData(kind, { retryable, ...(message !== undefined && { message: expect.stringContaining(message) }) });
  if (code !== undefined) {
    expect(answer.error, kind).toMatchObject({ code, data });
    if (message !== undefined) expect(answer.error?.message).toContain(message);
    return;
  }
  expect(answer.error, kind).toBeUndefined();
  expect(answer.result, kind).toMatchObject({ isError: true, _meta: { "owlclaw/error": data } });
  expect(text(answer)).toMatch(/^\w+ failed: .+\nhint: .+/s);
  if (message !== undefined) expect(text(answer)).toContain(message);
}
