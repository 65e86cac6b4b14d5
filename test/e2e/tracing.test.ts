import { expect, test } from "vitest";
import { until } from "../integration/harness.ts";
import { type CollectedSpan, OtlpCollector } from "../services/otlp-collector.ts";
import { connectHttp, makePlace, Server } from "./sandbox-client.ts";

const CLIENT_SPAN = "b7ad6b7169203331";
const CODE_MS = 200;

/** From the client's span down: each name with those below it. */
function paths(spans: readonly CollectedSpan[]): string[] {
  const pathOf = (span: CollectedSpan): string => {
    const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
    return parent === undefined ? `${span.parentSpanId} > ${span.name}` : `${pathOf(parent)} > ${span.name}`;
  };
  return spans.map(pathOf);
}

function expectInside(spans: readonly CollectedSpan[]): void {
  for (const span of spans) {
    const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
    expect(span.endMs).toBeGreaterThanOrEqual(span.startMs);
    if (parent === undefined) continue;
    expect(span.startMs).toBeGreaterThanOrEqual(parent.startMs - 0.01);
    expect(span.endMs).toBeLessThanOrEqual(parent.endMs + 0.01);
  }
}

test("[004-R11.8] one trace spans the client, the pipeline, the start of the sandbox, the guest and the interpreter", async () => {
  const collector = await OtlpCollector.start();
  const server = new Server(makePlace(), { telemetry: { otlp: { endpoint: collector.endpoint } } });
  const client = await connectHttp(await server.url());
  const run = async (digit: string, code: string, more: object = {}) => {
    const traceId = digit.repeat(32);
    const _meta = { traceparent: `00-${traceId}-${CLIENT_SPAN}-01` };
    const fromMs = Date.now();
    await client.request({ method: "tools/call", params: { name: "code_run", arguments: { code, ...more }, _meta } });
    const toMs = Date.now();
    const spans = await until(
      () => collector.of(traceId),
      (found) => found.some(({ parentSpanId }) => parentSpanId === CLIENT_SPAN),
    );
    return { spans, fromMs, toMs, find: (name: string) => spans.find((span) => span.name === name) };
  };
  const first = await run("1", `import time; time.sleep(${CODE_MS / 1000})`);
  const root = `${CLIENT_SPAN} > tools/call code_run`;
  expect(paths(first.spans)).toEqual(
    expect.arrayContaining([
      root,
      ...["auth", "policy", "limits", "run", "ledger"].map((stage) => `${root} > ${stage}`),
      `${root} > run > sandbox open > sandbox start > runtime start`,
      `${root} > run > sandbox open > sandbox start > guest guest.hello > guest.hello`,
      `${root} > run > guest code.run > code.run > interpreter.start`,
      `${root} > run > guest code.run > code.run > interpreter.run`,
    ]),
  );
  expectInside(first.spans);
  const whole = first.find("tools/call code_run");
  expect(whole?.startMs).toBeGreaterThanOrEqual(first.fromMs - 50);
  expect(whole?.endMs).toBeLessThanOrEqual(first.toMs + 50);
  const inside = first.find("interpreter.run");
  expect((inside?.endMs ?? 0) - (inside?.startMs ?? 0)).toBeGreaterThanOrEqual(CODE_MS - 1);
  expect(first.find("sandbox open")?.attributes).toMatchObject({
    "owlclaw.sandbox.created": true,
    "owlclaw.sandbox.runtime": "bubblewrap",
    "owlclaw.sandbox.session": expect.stringMatching(/^[0-9a-f]{16}$/),
  });

  const failed = await run("2", "1/0  # the-secret-of-this-code");
  expect(failed.find("tools/call code_run")).toMatchObject({
    isError: true,
    attributes: { "error.type": "tool_error", "mcp.session.id": expect.stringMatching(/^[0-9a-f]{16}$/) },
  });
  const inNode = await run("3", "[1, 2].map((n) => n * 2)", { language: "node" });
  expect(paths(inNode.spans)).toContain(`${root} > run > guest code.run > code.run > interpreter.run`);
  expectInside(inNode.spans);
  expect(collector.raw).not.toContain("the-secret-of-this-code");
  await server.stop();
});

test("a guest that lies about its times changes nothing but its own spans, and those stay inside", async () => {
  const collector = await OtlpCollector.start();
  const server = new Server(makePlace(), { telemetry: { otlp: { endpoint: collector.endpoint } } });
  const client = await connectHttp(await server.url());
  // The driver's answers go over a descriptor that the code can find: here it answers for itself, with times of its own.
  const code = `
import os, json
for fd in os.listdir("/proc/self/fd"):
    if int(fd) >= 200:
        for number in range(1, 40):
            try: os.write(int(fd), (json.dumps({"id": number, "status": "ok", "pictures": [], "ms": 1e300}) + "\\n").encode())
            except OSError: pass
`;
  const traceId = "5".repeat(32);
  const _meta = { traceparent: `00-${traceId}-${CLIENT_SPAN}-01` };
  await client.request({ method: "tools/call", params: { name: "code_run", arguments: { code }, _meta } });
  const spans = await until(
    () => collector.of(traceId),
    (found) => found.some(({ parentSpanId }) => parentSpanId === CLIENT_SPAN),
  );
  expectInside(spans);
  expect(spans.map(({ name }) => name)).toContain("interpreter.run");
  await server.stop();
});
