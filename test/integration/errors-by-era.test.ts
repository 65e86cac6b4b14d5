import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DEFAULT_CONFIG } from "../../src/config/schema.ts";
import { type HttpServer, startHttp, until } from "./harness.ts";
import { HttpSession, modern, plainCall, post, postJson, SseLine } from "./http-client.ts";
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
    if (version === MODERN)
      return { ask: (method, params) => line.modernRequest(method, params), close: () => line.finish() };
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

describe.each(DOORS)("over $transport in $version", ({ transport, version }) => {
  let line: Line;
  const isModern = version === MODERN;
  const isOld = OLD.includes(version);
  const call = (name: string, args: Record<string, unknown> = {}): Promise<JsonRpcAnswer> =>
    line.ask("tools/call", { name, arguments: args });

  beforeAll(async () => {
    line = await openLine(transport, version);
  });

  afterAll(() => line.close());

  test("[004-R1.8] [003-US1.2] an unknown method gets -32601 in the unified schema", async () => {
    expect(await line.ask("no/such")).toEqual({
      jsonrpc: "2.0",
      id: expect.anything(),
      error: {
        code: -32601,
        message: expect.any(String),
        data: expectedData("method_not_found", { retryable: false }),
      },
    });
  });

  test("[000-R4.5] an unknown tool is a not-found error of the era", async () => {
    const { error } = await call("nobody");
    expect(error).toEqual({
      code: isModern ? -32602 : -32001,
      message: expect.stringContaining("nobody"),
      data: expectedData("tool_not_found", { retryable: false }),
    });
  });

  test("an unknown resource is a not-found error of the era", async () => {
    const { error } = await line.ask("resources/read", { uri: "fixture://nothing" });
    expect(error).toEqual({
      code: isModern ? -32602 : -32002,
      message: expect.stringContaining("fixture://nothing"),
      data: expectedData("resource_not_found", { retryable: false, uri: "fixture://nothing" }),
    });
  });

  test("an unknown prompt, bad parameters and a bad cursor get -32602", async () => {
    const unknownPrompt = await line.ask("prompts/get", { name: "nothing" });
    expect(unknownPrompt.error).toMatchObject({ code: -32602, data: expectedData("prompt_not_found") });
    const badParams = await line.ask("tools/call", { name: 7 });
    expect(badParams.error).toMatchObject({ code: -32602, data: expectedData("invalid_params", { retryable: false }) });
    for (const list of ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]) {
      const badCursor = await line.ask(list, { cursor: "bad" });
      expect(badCursor.error).toMatchObject({ code: -32602, data: expectedData("invalid_params") });
    }
  });

  test("[000-R4.4] [004-R5.2] [004-R5.3] [004-R9.4] arguments against the schema are refused with the paths, as the era wants it", async () => {
    const answer = await call("typed", { text: "x", count: 11, items: [{}], extra: 1 });
    expect(outcomeOf(answer)).toEqual(failure(isOld ? -32602 : "result", "invalid_params", { retryable: false }));
    const { message, issues } = dataOf(answer);
    for (const place of ["text", "count", "items[0].name", "extra"]) {
      expect(message).toContain(place);
      expect(issues).toContainEqual({ path: place, message: expect.any(String) });
    }
  });

  test("[000-R4.1] [000-R4.3] an internal error is InternalError", async () => {
    const answer = await call("fail_as", { kind: "internal" });
    expect(outcomeOf(answer)).toEqual(failure(-32603, "internal", { retryable: true }));
    expect(dataOf(answer)["fact"]).toBe(7);
  });

  test("[000-R4.2] a resource limit is InvalidRequest, or a result since 2026-07-28", async () => {
    const answer = await call("fail_as", { kind: "resource_limit" });
    expect(outcomeOf(answer)).toEqual(failure(isModern ? "result" : -32600, "resource_limit", { retryable: true }));
  });

  test("[004-R9.6] a tool that takes too long gets -32004, or a result since 2026-07-28", async () => {
    const answer = await call("dawdle");
    expect(outcomeOf(answer)).toEqual(failure(isModern ? "result" : -32004, "timeout", { retryable: true }));
    expect(dataOf(answer)["timeout_ms"]).toBe(50);
  });

  test("[004-R9.7] [004-R5.9] a handler that throws gets -32005 with what it said, or a result since 2026-07-28", async () => {
    const answer = await call("fail", { message: "kaput" });
    expect(outcomeOf(answer)).toEqual(
      failure(isModern ? "result" : -32005, "execution_error", { retryable: false, message: "kaput" }),
    );
    expect(outcomeOf(answer).message).toContain("kaput");
  });

  test("a handler that breaks its own output schema has failed", async () => {
    const answer = await call("break_own_schema");
    expect(outcomeOf(answer)).toEqual(failure(isModern ? "result" : -32005, "execution_error", { retryable: false }));
  });

  test("a lost session is a result in every era", async () => {
    const answer = await call("fail_as", { kind: "session_not_found" });
    expect(outcomeOf(answer)).toEqual(failure("result", "session_not_found", { retryable: false }));
  });

  test("a resource that cannot be read is an error with a code that the era allows", async () => {
    const answer = await line.ask("resources/read", { uri: "fixture://broken" });
    expect(outcomeOf(answer)).toEqual(
      failure(isModern ? -32603 : -32005, "execution_error", { retryable: false, message: "cannot be read today" }),
    );
  });

  test("a result that a handler marks as failed stays a result", async () => {
    const { result } = await call("refuse");
    expect(result).toMatchObject({ content: [{ type: "text", text: "no luck" }], isError: true });
  });

  test("[004-R9.1] [003-FR-008] [003-FR-011] [004-R9.9] every error is JSON-RPC 2.0 with code, message, trace id, kind and retryable", async () => {
    const traces = new Set<unknown>();
    for (const answer of [
      await line.ask("no/such"),
      await call("nobody"),
      await call("fail_as", { kind: "internal" }),
    ]) {
      expect(answer).toEqual({
        jsonrpc: "2.0",
        id: expect.anything(),
        error: {
          code: expect.any(Number),
          message: expect.stringMatching(/./),
          data: expect.objectContaining({
            kind: expect.stringMatching(/^[a-z_]+$/),
            message: answer.error?.message,
            trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
            retryable: expect.any(Boolean),
          }),
        },
      });
      traces.add(dataOf(answer)["trace_id"]);
    }
    expect(traces.size).toBe(3);
  });
});

test("[004-R9.2] the standard codes are used for what they stand for", async () => {
  const codes = async (text: string): Promise<number | undefined> => (await post(server.url, text)).body.error?.code;
  expect(await codes("{")).toBe(-32700);
  expect(await codes('{"jsonrpc":"2.0","id":1}')).toBe(-32600);
  expect(await codes('{"jsonrpc":"2.0","id":1,"method":"no/such"}')).toBe(-32601);
  expect(await codes('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}')).toBe(-32602);
});

test("[004-R9.5] a stack is in the error in development mode only", async () => {
  const development = await startHttp({ config: { mode: "development" } });
  const stackOf = async ({ url }: HttpServer, name: string): Promise<unknown> =>
    (await plainCall(url, name)).body.error?.data?.["stack"];
  expect(await stackOf(development, "fail")).toMatch(/it broke[\s\S]*at .*basic\.ts/);
  expect(await stackOf(development, "nobody")).toMatch(/\n +at /);
  for (const name of ["fail", "nobody"]) {
    const { text } = await plainCall(server.url, name);
    expect(text).not.toContain("stack");
    expect(text).not.toMatch(/\.[jt]s:\d+/);
  }
  const inResult = await modern(development.url, "tools/call", { name: "fail", arguments: {} });
  expect(dataOf(inResult.body)["stack"]).toContain("it broke");
  await development.stop();
});

test("[004-R5.10] the time-out of tools is configurable and 300 s by default", async () => {
  expect(DEFAULT_CONFIG.tools.timeoutSeconds).toBe(300);
  const hasty = await startHttp({ config: { tools: { timeoutSeconds: 3 } } });
  // What starts with the first call is no part of what is timed.
  await until(
    () => plainCall(hasty.url, "echo", { text: "there" }),
    ({ body }) => body.error === undefined,
  );
  const { body } = await plainCall(hasty.url, "hold", { label: "hasty" });
  expect(body.error).toMatchObject({ code: -32004, data: { kind: "timeout", timeout_ms: 3000 } });
  const { result } = (await plainCall(hasty.url, "observe", { label: "hasty" })).body;
  expect(result?.["structuredContent"]).toEqual({ started: true, aborted: true, finished: false });
  await hasty.stop();
});

function dataOf({ error, result }: JsonRpcAnswer): Record<string, unknown> {
  return error?.data ?? result?.["_meta"]?.["owlclaw/error"] ?? {};
}

interface Outcome {
  /** The code of a protocol error, or "result" for a failure that a model can read. */
  readonly code: number | "result";
  readonly message: string;
  readonly data: Record<string, unknown>;
}

/** Errors and results that say they failed, side by side: their data are the same. */
function outcomeOf(answer: JsonRpcAnswer): Outcome {
  const { error, result } = answer;
  const data = dataOf(answer);
  if (error !== undefined) return { code: error.code, message: error.message, data };
  if (result?.["isError"] !== true) throw new Error(`it did not fail: ${JSON.stringify(answer)}`);
  return { code: "result", message: text(answer) ?? "", data };
}

function failure(code: Outcome["code"], kind: string, facts: Record<string, unknown>): Outcome {
  const message = code === "result" ? /^\w+ failed: .+\nhint: .+/s : /./;
  return { code, message: expect.stringMatching(message), data: expectedData(kind, facts) };
}
