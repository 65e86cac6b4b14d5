import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { startHttp, until } from "./harness.ts";

const SECRET = "ghp_0123456789abcdef0123456789abcdef0123";

async function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

function toolCall(id: number, name: string, args: Record<string, unknown>) {
  return { jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } };
}

test("[004-R11.1] [004-R11.2] [004-R11.9] at debug every request and answer is a JSON line with id, method, parameters, time and trace id", async () => {
  const server = await startHttp({ config: { logging: { level: "debug" } } });
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
  await post(server.url, { jsonrpc: "2.0", id: 7, method: "tools/list", params: {} }, { traceparent });
  await post(server.url, toolCall(8, "echo", { text: `my token is ${SECRET}` }), { traceparent });
  await until(
    () => server.logs.filter(({ message }) => message === "answer"),
    (answers) => answers.length === 2,
  );
  const of = (message: string, id: number) =>
    server.logs.find((line) => line["message"] === message && line["request_id"] === id);
  const common = { trace_id: traceId, principal: "anonymous", transport: "http" };
  expect(of("request", 7)).toMatchObject({ ...common, method: "tools/list", params: {} });
  expect(of("answer", 7)).toMatchObject({
    ...common,
    method: "tools/list",
    duration_ms: expect.any(Number),
    outcome: "ok",
    answer: { tools: expect.anything() },
  });
  expect(of("request", 8)).toMatchObject({ ...common, method: "tools/call", params: { name: "echo" } });
  expect(of("answer", 8)).toMatchObject({
    ...common,
    duration_ms: expect.any(Number),
    answer: { content: [{ type: "text" }] },
  });
  expect(server.stderr.every((line) => line.startsWith("{"))).toBe(true);
  expect(server.stderr.join("\n")).toContain("[redacted]");
  expect(server.stderr.join("\n")).not.toContain(SECRET);
  await server.stop();
});

test("[004-R11.9] the trace that a request names in its _meta is that of its log line and of its error, in every era", async () => {
  const server = await startHttp();
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;
  const modern = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const asked = { jsonrpc: "2.0", method: "tools/call" };
  const plain = { ...asked, id: 1, params: { name: "no_such_tool", arguments: {}, _meta: { traceparent } } };
  const stateless = { ...asked, id: 2, params: { ...plain.params, _meta: { traceparent, ...modern } } };
  const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "no_such_tool" };
  for (const response of [await post(server.url, plain), await post(server.url, stateless, headers)])
    expect(await response.json()).toMatchObject({ error: { data: { trace_id: traceId } } });
  const calls = await until(
    () => server.logs.filter(({ message }) => message === "tool call"),
    (lines) => lines.length === 2,
  );
  expect(calls.map((line) => line["trace_id"])).toEqual([traceId, traceId]);
  await server.stop();
});

test("[004-R11.3] [004-R11.4] a call is a line with tool, time, cost, decision, rule and what is left", async () => {
  const tools = { echo: { cost: 0.25 } };
  const defaults = { callsPerMinute: 2, monthlyBudget: 100 };
  const server = await startHttp({
    config: { governance: { defaults, tools }, sandbox: { enabled: false, root: temporaryFolder({}) } },
  });
  for (const id of [1, 2, 3]) await post(server.url, toolCall(id, "echo", { text: "hello" }));
  const calls = await until(
    () => server.logs.filter(({ message }) => message === "tool call"),
    (lines) => lines.length === 3,
  );
  expect(calls[0]).toMatchObject({
    level: "info",
    tool: "echo",
    outcome: "ok",
    duration_ms: expect.any(Number),
    parameters: { text: "[5 characters]" },
    cost: 0.25,
    decision: "allow",
    rule: "default",
    remaining: { per_minute: 1, budget: expect.any(Number) },
    principal: "anonymous",
    request_id: 1,
    trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
  });
  expect(calls[2]).toMatchObject({
    outcome: "refused",
    decision: "deny",
    rule: expect.stringContaining("callsPerMinute"),
    error_kind: "governance_denied",
    reason: expect.stringMatching(/limit of 2 calls/),
  });
  await server.stop();
});

test.each([
  ["a sign of JSON", '"', {}],
  ["a figure of a number beside it", "1", { times: 1121 }],
  ["what joins two fields", '","text":"', {}],
  ["the end of a sign that is written in two", `n${"a".repeat(31)}`, { more: `\n${"a".repeat(31)}` }],
])("[004-R11.2] a session_id that is %s takes away neither the answer nor the line", async (_what, id, more) => {
  const server = await startHttp({ config: { logging: { level: "debug" } } });
  const args = { first: "one", text: "hello", session_id: id, ...more };
  const response = await post(server.url, toolCall(1, "echo", args));
  expect(await response.json()).toMatchObject({ result: { content: [{ text: "hello" }] } });
  expect(await server.logged("tool call")).toMatchObject({
    outcome: "ok",
    params: { text: "hello", session_id: "[redacted]" },
  });
  const metrics = await (await fetch(`${server.origin}/metrics`)).text();
  expect(metrics).toContain('owlclaw_calls_total{kind="tool",tool="echo",outcome="ok"} 1\n');
  await server.stop();
});

test("[004-R9.8] every error is logged: what a handler threw with its stack, what was refused with its kind", async () => {
  const server = await startHttp();
  await post(server.url, toolCall(1, "fail", {}));
  await post(server.url, toolCall(2, "no_such_tool", {}));
  await post(server.url, { jsonrpc: "2.0", id: 3, method: "no/such" });
  await post(server.url, "{");
  await fetch(`${server.origin}/nowhere`);
  await until(
    () => server.logs.filter(({ message }) => message === "request refused"),
    (lines) => lines.length >= 2,
  );
  const refused = server.logs.filter(({ message }) => message === "request refused").map(({ kind }) => kind);
  expect(refused).toContain("method_not_found");
  expect(refused).toContain("route_not_found");
  expect(server.logs.find(({ message }) => message === "tool failed")).toMatchObject({
    tool: "fail",
    trace_id: expect.any(String),
    error: { type: expect.any(String), message: expect.any(String), stack: expect.stringContaining("at ") },
  });
  expect(server.logs.filter(({ message }) => message === "tool call").map((line) => line["error_kind"])).toEqual(
    expect.arrayContaining(["execution_error", "tool_not_found"]),
  );
  await server.stop();
});

test("the log is written to a file, too, and moved aside when it is full", async () => {
  const file = path.join(temporaryFolder({}), "owlclaw.log");
  const server = await startHttp({ config: { logging: { file, fileMaxBytes: 10_000, fileKeep: 2 } } });
  for (let id = 0; id < 60; id += 1) await post(server.url, toolCall(id, "echo", { text: "hello" }));
  await server.stop();
  const lines = [`${file}.1`, file].flatMap((name) => readFileSync(name, "utf8").trimEnd().split("\n"));
  expect(lines.every((line) => typeof JSON.parse(line).level === "string")).toBe(true);
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ message: "stopped" });
});
