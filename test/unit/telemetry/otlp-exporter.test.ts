import { expect, test } from "vitest";
import { type LogFields, SILENT_LOGGER } from "../../../src/telemetry/logger.ts";
import { OtlpExporter, type OtlpExporterOptions } from "../../../src/telemetry/tracing/otlp-exporter.ts";
import { Tracer } from "../../../src/telemetry/tracing/tracer.ts";
import { until } from "../../integration/harness.ts";
import { OtlpCollector } from "../../services/otlp-collector.ts";

const SOURCE = { serviceName: "owlclaw", version: "0", instanceId: "test" };

function exporting(endpoint: string, times: Pick<OtlpExporterOptions, "timeoutMs" | "lastWordsMs"> = {}) {
  const counts = { exported: 0, dropped: 0 };
  const said: [string, LogFields | undefined][] = [];
  const logger = {
    ...SILENT_LOGGER,
    warning: (message: string, fields?: LogFields) => said.push([message, fields]),
    info: (message: string, fields?: LogFields) => said.push([message, fields]),
    shows: () => true,
    child: () => SILENT_LOGGER,
    debug: () => undefined,
    error: () => undefined,
  };
  const exporter = new OtlpExporter({
    url: `${endpoint}/v1/traces`,
    headers: { authorization: "Bearer for-the-collector" },
    source: SOURCE,
    logger,
    onSpans: (outcome, count) => (counts[outcome] += count),
    firstPauseMs: 10,
    ...times,
  });
  const tracer = new Tracer({ sink: exporter.add, sampleRatio: 1 });
  const emit = (count: number): void => {
    for (let at = 0; at < count; at += 1) tracer.record({ name: `span ${at}`, durationMs: 1 });
  };
  return { exporter, emit, counts, said };
}

test("spans arrive in batches, with the headers of the operator, and all of them before the end", async () => {
  const collector = await OtlpCollector.start();
  const { exporter, emit, counts } = exporting(collector.endpoint, { lastWordsMs: 60_000 });
  emit(1200);
  await exporter.close();
  expect(collector.spans).toHaveLength(1200);
  expect(collector.requests).toBe(3);
  expect(collector.headers[0]).toMatchObject({ authorization: "Bearer for-the-collector" });
  expect(counts).toEqual({ exported: 1200, dropped: 0 });
});

test("a collector that is overloaded gets the same spans again, once each, and the log hears of it once", async () => {
  const collector = await OtlpCollector.start();
  collector.behaviour = "overloaded";
  const { exporter, emit, counts, said } = exporting(collector.endpoint, { lastWordsMs: 60_000 });
  emit(600);
  await until(
    () => collector.requests,
    (requests) => requests >= 2,
  );
  collector.behaviour = "takes";
  await until(
    () => counts.exported,
    (exported) => exported === 600,
  );
  expect(new Set(collector.spans.map(({ spanId }) => spanId)).size).toBe(600);
  expect(said).toEqual([
    ["traces cannot be delivered", { reason: "the collector answered 503" }],
    ["traces are delivered again", undefined],
  ]);
  await exporter.close();
});

test("what a collector refuses is not sent again", async () => {
  const collector = await OtlpCollector.start();
  collector.behaviour = "refuses";
  const { exporter, emit, counts } = exporting(collector.endpoint, { lastWordsMs: 60_000 });
  emit(5);
  await exporter.close();
  expect(collector.requests).toBe(1);
  expect(counts).toEqual({ exported: 0, dropped: 5 });
});

test("with a collector that hangs or is gone the spans that wait have an end, and the end of the server does not wait for it", async () => {
  const collector = await OtlpCollector.start();
  collector.behaviour = "hangs";
  for (const endpoint of [collector.endpoint, "http://127.0.0.1:9"]) {
    const { exporter, emit, counts } = exporting(endpoint, { timeoutMs: 300 });
    emit(10_000);
    expect(counts.dropped).toBe(10_000 - 8192 - 512);
    await exporter.close();
    emit(1);
    expect(counts).toEqual({ exported: 0, dropped: 10_001 });
  }
});
