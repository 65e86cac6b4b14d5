import { expect, test } from "vitest";
import { activeSpan, runInSpan, traced, untraced } from "../../../src/telemetry/tracing/active-span.ts";
import { toOtlpJson } from "../../../src/telemetry/tracing/otlp-exporter.ts";
import { centred, clockMs, type SpanRecord } from "../../../src/telemetry/tracing/span.ts";
import { Tracer } from "../../../src/telemetry/tracing/tracer.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = { traceId: TRACE, spanId: "b7ad6b7169203331", isSampled: true };

function collecting(sampleRatio = 1) {
  const records: SpanRecord[] = [];
  return { records, tracer: new Tracer({ sink: (record) => records.push(record), sampleRatio }) };
}

test("stages follow each other, and what is begun in one belongs to it", async () => {
  const { records, tracer } = collecting();
  const root = tracer.begin({ traceId: TRACE, parent: PARENT, name: "call" });
  await runInSpan(root, async () => {
    activeSpan()?.stage("first");
    activeSpan()?.stage("second");
    await traced({ name: "inner" }, async () => {
      await traced({ name: "innermost" }, () => Promise.resolve());
    });
  });
  root?.end();
  const parents = Object.fromEntries(
    records.map(({ name, parentId }) => [name, records.find(({ spanId }) => spanId === parentId)?.name ?? parentId]),
  );
  expect(parents).toEqual({
    first: "call",
    second: "call",
    inner: "second",
    innermost: "inner",
    call: PARENT.spanId,
  });
  expect(records.every(({ traceId }) => traceId === TRACE)).toBe(true);
});

test("a failure is a kind, and never what was said", async () => {
  const { records, tracer } = collecting();
  const root = tracer.begin({ traceId: TRACE, parent: undefined, name: "call" });
  const failing = runInSpan(root, () => traced({ name: "work" }, () => Promise.reject(new TypeError("my password"))));
  await expect(failing).rejects.toThrow("my password");
  root?.end("tool_error");
  expect(records.map(({ name, errorType }) => [name, errorType])).toEqual([
    ["work", "TypeError"],
    ["call", "tool_error"],
  ]);
  expect(JSON.stringify(records)).not.toContain("password");
});

test("work without a trace makes nothing, and work that is taken out of one neither", async () => {
  const { records, tracer } = collecting();
  await traced({ name: "alone" }, (span) => Promise.resolve(expect(span).toBeUndefined()));
  const root = tracer.begin({ traceId: TRACE, parent: undefined, name: "call" });
  runInSpan(root, () => untraced(() => expect(activeSpan()).toBeUndefined()));
  expect(records).toEqual([]);
});

test("a caller decides for its own trace; others are kept by their share, alike on every server", () => {
  const { tracer } = collecting(0.25);
  expect(tracer.begin({ traceId: TRACE, parent: { ...PARENT, isSampled: false }, name: "x" })).toBeUndefined();
  expect(tracer.begin({ traceId: TRACE, parent: PARENT, name: "x" })).toBeDefined();
  const ids = Array.from(
    { length: 4096 },
    (_, at) => `${"a".repeat(18)}${at.toString(16).padStart(3, "0")}${"b".repeat(11)}`,
  );
  const spread = ids.map((id) => id.slice(0, 18) + "0" + id.slice(18, 21) + "b".repeat(10));
  const kept = spread.filter((traceId) => tracer.begin({ traceId, parent: undefined, name: "x" }) !== undefined);
  expect(kept.length / spread.length).toBeCloseTo(0.25, 2);
  const none = collecting(0).tracer;
  expect(none.begin({ traceId: TRACE, parent: undefined, name: "x" })).toBeUndefined();
});

test("times that another clock measured never reach beyond the span, whatever was said", () => {
  const startMs = clockMs() - 100;
  for (const measured of [
    { startMs: 0, durationMs: 40 },
    { startMs: 0, durationMs: 1e9 },
    { startMs: 1e9, durationMs: 5 },
    { startMs: 0, durationMs: 0, wholeMs: 1e9 },
  ]) {
    const { startMs: from, endMs: to } = centred({ startMs }, measured);
    expect(from).toBeGreaterThanOrEqual(startMs);
    expect(to).toBeGreaterThanOrEqual(from);
    expect(to).toBeLessThanOrEqual(clockMs());
  }
});

test("the JSON form has ids in hexadecimal, nanoseconds as text and typed values", () => {
  const span: SpanRecord = {
    traceId: TRACE,
    spanId: "00f067aa0ba902b7",
    parentId: undefined,
    state: "a=1",
    name: "tools/call echo",
    kind: "server",
    startMs: 1_800_000_000_000.25,
    endMs: 1_800_000_000_001.5,
    attributes: { text: "a", whole: 3, part: 0.5, yes: true },
    errorType: "tool_error",
  };
  const body = JSON.parse(toOtlpJson([span], { serviceName: "mine", version: "1", instanceId: "i" })) as {
    resourceSpans: { resource: object; scopeSpans: { spans: object[] }[] }[];
  };
  expect(body.resourceSpans[0]?.resource).toMatchObject({
    attributes: expect.arrayContaining([{ key: "service.name", value: { stringValue: "mine" } }]),
  });
  expect(body.resourceSpans[0]?.scopeSpans[0]?.spans).toEqual([
    {
      traceId: TRACE,
      spanId: "00f067aa0ba902b7",
      traceState: "a=1",
      name: "tools/call echo",
      kind: 2,
      startTimeUnixNano: "1800000000000250000",
      endTimeUnixNano: "1800000000001500000",
      attributes: [
        { key: "text", value: { stringValue: "a" } },
        { key: "whole", value: { intValue: "3" } },
        { key: "part", value: { doubleValue: 0.5 } },
        { key: "yes", value: { boolValue: true } },
        { key: "error.type", value: { stringValue: "tool_error" } },
      ],
      status: { code: 2 },
    },
  ]);
});
