import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, onTestFinished, test } from "vitest";
import { type CollectedSpan, OtlpCollector } from "../services/otlp-collector.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { headersOf, SECRET as JWT_SECRET, token } from "./governance-lab.ts";
import { startHttp, stdioCommand, until } from "./harness.ts";
import { postJson } from "./http-client.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CLIENT_SPAN = "b7ad6b7169203331";
const TRACEPARENT = `00-${TRACE}-${CLIENT_SPAN}-01`;
const SECRET = "ghp_0123456789abcdef0123456789abcdef0123";
const SERVER = 2;
const STAGES = ["auth", "policy", "limits", "approval", "run", "ledger"];

function tracing(endpoint: string, otlp: Readonly<Record<string, unknown>> = {}) {
  return { telemetry: { otlp: { endpoint, ...otlp } }, sandbox: { enabled: false, root: temporaryFolder({}) } };
}

async function call(url: string, params: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/call", params }),
  });
}

interface Approvals {
  readonly approvals: readonly { readonly id: string }[];
}

/** Spans of a trace, when the one that ends last has come. */
function traceOf(collector: OtlpCollector, traceId = TRACE): Promise<CollectedSpan[]> {
  return until(
    () => collector.of(traceId),
    (spans) => spans.some(({ kind, parentSpanId }) => kind === SERVER && !spans.some((s) => s.spanId === parentSpanId)),
  );
}

/** Names, each below the one that it belongs to. */
function tree(spans: readonly CollectedSpan[], parent: string | undefined): object {
  const children = spans
    .filter(({ parentSpanId }) => parentSpanId === parent)
    .toSorted((a, b) => a.startMs - b.startMs)
    .map((span) => [span.name, tree(spans, span.spanId)] as const);
  return Object.fromEntries(children);
}

function expectPlausible(spans: readonly CollectedSpan[], { fromMs, toMs }: { fromMs: number; toMs: number }): void {
  for (const span of spans) {
    expect(span.endMs).toBeGreaterThanOrEqual(span.startMs);
    const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
    // Clocks of two processes are compared, so a little slack is theirs.
    expect(span.startMs).toBeGreaterThanOrEqual((parent?.startMs ?? fromMs - 50) - 0.01);
    expect(span.endMs).toBeLessThanOrEqual((parent?.endMs ?? toMs + 50) + 0.01);
  }
}

test("[004-R11.8] a call over HTTP is one trace, from the client's span through every stage into the worker of the handler", async () => {
  const collector = await OtlpCollector.start();
  const server = await startHttp({ config: tracing(collector.endpoint, { serviceName: "owls" }) });
  const fromMs = Date.now();
  const answer = await call(server.url, { name: "echo", arguments: { text: "hi" } }, { traceparent: TRACEPARENT });
  expect(answer.headers.get("x-trace-id")).toBe(TRACE);
  const spans = await traceOf(collector);
  expect(tree(spans, CLIENT_SPAN)).toEqual({
    "tools/call echo": { auth: {}, policy: {}, limits: {}, run: { handler: { "handler run": {} } }, ledger: {} },
  });
  expectPlausible(spans, { fromMs, toMs: Date.now() });
  const root = spans.find(({ parentSpanId }) => parentSpanId === CLIENT_SPAN);
  expect(root).toMatchObject({ kind: SERVER, isError: false });
  expect(root?.attributes).toEqual({
    "mcp.method.name": "tools/call",
    "mcp.protocol.version": "2025-03-26",
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "echo",
    "jsonrpc.request.id": "7",
    "network.transport": "tcp",
    "network.protocol.name": "http",
  });
  expect(collector.resources[0]).toMatchObject({ "service.name": "owls", "service.version": expect.any(String) });
  await server.stop();
});

test.each(["http", "stdio"] as const)(
  "[004-R11.8] the trace in _meta of a real client over %s goes before the header",
  async (transport) => {
    const collector = await OtlpCollector.start();
    const options = { config: tracing(collector.endpoint) };
    const client = new Client({ name: "tracing-test", version: "1" });
    onTestFinished(() => client.close());
    if (transport === "stdio")
      await client.connect(new StdioClientTransport({ ...stdioCommand(options), stderr: "ignore" }));
    else {
      const headers = { traceparent: `00-${"c".repeat(32)}-${"d".repeat(16)}-01` };
      const { url } = await startHttp(options);
      await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
    }
    const params = { name: "echo", arguments: { text: "hi" }, _meta: { traceparent: TRACEPARENT } };
    await client.request({ method: "tools/call", params });
    const spans = await traceOf(collector);
    const root = spans.find(({ parentSpanId }) => parentSpanId === CLIENT_SPAN);
    expect(root?.name).toBe("tools/call echo");
    expect(spans.map(({ name }) => name)).toEqual(expect.arrayContaining(["policy", "limits", "run", "ledger"]));
    expect(root?.attributes["network.transport"]).toBe(transport === "stdio" ? "pipe" : "tcp");
  },
);

const TELLING = {
  "tells.ts": `
import type { CallContext } from "owlclaw";

/** Says where its call stands. */
export function tells(_input: { readonly nothing?: string }, context: CallContext): string {
  return context.traceparent + " " + context.tracestate;
}
`,
  "tells.py": `
from owlclaw import Context


def tells_too(context: Context) -> str:
    """Says where its call stands."""
    return f"{context.traceparent} {context.tracestate}"
`,
};

test("tracestate goes into every span and to handlers, from where the traceparent is and from nowhere else", async () => {
  const collector = await OtlpCollector.start();
  const paths = [temporaryFolder(TELLING)];
  const server = await startHttp({ config: { ...tracing(collector.endpoint), handlers: { paths } } });
  const inMeta = { traceparent: TRACEPARENT, tracestate: "meta=1, tenant@vendor=x" };
  const header = { traceparent: `00-${"c".repeat(32)}-${CLIENT_SPAN}-01`, tracestate: "header=1" };
  const told = async (name: string, meta: object, headers: Record<string, string>): Promise<string> =>
    JSON.stringify(await (await call(server.url, { name, arguments: {}, _meta: meta }, headers)).json());
  for (const name of ["tells", "tells_too"]) {
    expect(await told(name, inMeta, header)).toMatch(new RegExp(`00-${TRACE}-[0-9a-f]{16}-01 meta=1,tenant@vendor=x"`));
    expect(await told(name, {}, header)).toMatch(/00-c{32}-[0-9a-f]{16}-01 header=1"/);
    expect(await told(name, { traceparent: TRACEPARENT }, header)).toMatch(/ (?:undefined|None)"/);
    expect(await told(name, { tracestate: "meta=1" }, header)).toContain(" header=1");
  }
  await server.stop();
  const states = (traceId: string): Set<string | undefined> =>
    new Set(collector.of(traceId).map(({ traceState }) => traceState));
  expect(states(TRACE)).toEqual(new Set(["meta=1,tenant@vendor=x", undefined]));
  expect(states("c".repeat(32))).toEqual(new Set(["header=1"]));
  // Handlers in two languages are compiled and started for it.
}, 90_000);

test("how long an operator was waited for is a stage of its own, and so is a no", async () => {
  const collector = await OtlpCollector.start();
  const governance = { tools: { echo: { confirm: "operator" } } };
  const auth = { enabled: true, jwt: { secret: JWT_SECRET } };
  const server = await startHttp({ config: { ...tracing(collector.endpoint), governance, auth } });
  const ada = headersOf({ token: await token("ada") });
  const headers = headersOf({ token: await token("root", { scope: "owlclaw:admin" }) });
  const decided = async (decision: "approve" | "deny", traceId: string) => {
    const traceparent = `00-${traceId}-${CLIENT_SPAN}-01`;
    const answer = call(server.url, { name: "echo", arguments: { text: "hi" } }, { ...ada, traceparent });
    const [approval] = await until(
      async () => ((await (await fetch(`${server.origin}/api/approvals`, { headers })).json()) as Approvals).approvals,
      (approvals) => approvals.length === 1,
    );
    const seenMs = Date.now();
    const verdict = await postJson(`${server.origin}/api/approvals/${approval?.id}`, { decision }, headers);
    expect(verdict.status).toBe(200);
    await answer;
    const spans = await traceOf(collector, traceId);
    return { spans, seenMs, approval: spans.find(({ name }) => name === "approval") };
  };
  const yes = await decided("approve", TRACE);
  expect(Object.keys(Object.values(tree(yes.spans, CLIENT_SPAN))[0] as object)).toEqual(STAGES);
  expect(yes.approval).toMatchObject({ isError: false, attributes: { "owlclaw.approval.by": "operator" } });
  // Clocks of two processes are compared, so a little slack is theirs.
  expect(yes.approval?.startMs).toBeLessThanOrEqual(yes.seenMs + 50);
  expect(yes.approval?.endMs).toBeGreaterThanOrEqual(yes.seenMs - 50);
  const no = await decided("deny", "d".repeat(32));
  expect(no.approval).toMatchObject({ isError: true, attributes: { "error.type": "governance_denied" } });
  expect(no.spans.map(({ name }) => name)).not.toContain("run");
  await server.stop();
});

test("a failed result is a tool_error, a refusal has its kind and code, and no span holds what people wrote", async () => {
  const collector = await OtlpCollector.start();
  const server = await startHttp({
    config: { ...tracing(collector.endpoint), governance: { defaults: { hidden: ["add"] } } },
  });
  const roots = async (params: object, digit: string): Promise<CollectedSpan | undefined> => {
    const traceId = digit.repeat(32);
    await call(server.url, params, { traceparent: `00-${traceId}-${CLIENT_SPAN}-01` });
    return (await traceOf(collector, traceId)).find(({ parentSpanId }) => parentSpanId === CLIENT_SPAN);
  };
  expect(await roots({ name: "refuse", arguments: {} }, "1")).toMatchObject({
    isError: true,
    attributes: { "error.type": "tool_error" },
  });
  expect(await roots({ name: "fail", arguments: { message: SECRET } }, "2")).toMatchObject({
    isError: true,
    attributes: { "error.type": "execution_error", "rpc.response.status_code": "-32005" },
  });
  expect(await roots({ name: "add", arguments: { a: 1, b: 2, note: SECRET } }, "3")).toMatchObject({
    isError: true,
    attributes: { "error.type": "governance_denied", "rpc.response.status_code": "-32003" },
  });
  const unknown = await roots({ name: SECRET, arguments: { password: "hunter2" } }, "4");
  expect(unknown).toMatchObject({ name: "tools/call", isError: true });
  for (const text of [SECRET, "hunter2"]) expect(collector.raw).not.toContain(text);
  await server.stop();
});

test("a traceparent that is none is ignored, and the request gets a trace of its own", async () => {
  const collector = await OtlpCollector.start();
  const server = await startHttp({ config: tracing(collector.endpoint) });
  const none = [`00-${"0".repeat(32)}-${CLIENT_SPAN}-01`, `00-${TRACE}`, "<script>alert(1)</script>"];
  for (const traceparent of none) {
    const params = { name: "echo", arguments: { text: "hi" }, _meta: { traceparent } };
    const answer = await call(server.url, params, { traceparent });
    const own = String(answer.headers.get("x-trace-id"));
    expect(own).toMatch(/^[0-9a-f]{32}$/);
    const spans = await traceOf(collector, own);
    const roots = spans.filter(({ parentSpanId }) => parentSpanId === undefined);
    expect(roots.map(({ name }) => name)).toEqual(["tools/call echo"]);
  }
  expect(collector.raw).not.toContain("script");
  await server.stop();
});

test("what a client does not want traced is not, and neither is what the share leaves out", async () => {
  const collector = await OtlpCollector.start();
  const server = await startHttp({ config: tracing(collector.endpoint, { sampleRatio: 0 }) });
  await call(server.url, { name: "echo", arguments: { text: "a" } });
  await call(server.url, { name: "echo", arguments: { text: "b" } }, { traceparent: `00-${TRACE}-${CLIENT_SPAN}-00` });
  const other = "e".repeat(32);
  await call(server.url, { name: "echo", arguments: { text: "c" } }, { traceparent: `00-${other}-${CLIENT_SPAN}-01` });
  await traceOf(collector, other);
  await server.stop();
  expect(new Set(collector.spans.map(({ traceId }) => traceId))).toEqual(new Set([other]));
});

test("OTEL_… variables of the standard switch it on, and token and address stay out of the log", async () => {
  const collector = await OtlpCollector.start();
  const server = await startHttp({
    config: { sandbox: { enabled: false, root: temporaryFolder({}) }, logging: { level: "debug" } },
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.endpoint}/`,
      OTEL_EXPORTER_OTLP_HEADERS: "x-token=very-secret-token",
      OTEL_SERVICE_NAME: "from-the-environment",
      OTEL_TRACES_SAMPLER_ARG: "1",
    },
  });
  await call(server.url, { name: "echo", arguments: { text: "hi" } }, { traceparent: TRACEPARENT });
  await traceOf(collector);
  expect(collector.resources[0]).toMatchObject({ "service.name": "from-the-environment" });
  expect(collector.headers[0]).toMatchObject({ "x-token": "very-secret-token" });
  await server.stop();
  expect(server.stderr.join("\n")).not.toContain("very-secret-token");
});

test.each(["hangs", "gone"] as const)(
  "a collector that is no help (%s) harms no call, and the server ends in time",
  async (behaviour) => {
    const collector = await OtlpCollector.start();
    if (behaviour !== "gone") collector.behaviour = behaviour;
    const endpoint = behaviour === "gone" ? "http://127.0.0.1:1" : collector.endpoint;
    const server = await startHttp({ config: tracing(endpoint) });
    for (let round = 0; round < 20; round += 1) {
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => call(server.url, { name: "echo", arguments: { text: "hi" } })),
      );
      for (const answer of answers)
        expect(await answer.json()).toMatchObject({ result: { content: expect.anything() } });
    }
    await server.stop();
  },
);
