import { expect, test } from "vitest";
import { HistogramSeries, NumberSeries } from "../../../src/telemetry/metrics/series.ts";

const LONG = "x".repeat(128);

test("labels that read the same once they are cut are one series, as a scrape demands", () => {
  const calls = new NumberSeries({ name: "calls", type: "counter", help: "", labels: ["tool", "kind"] });
  calls.add([`${LONG}a`, "tool"], 1);
  calls.add([`${LONG}b`, "tool"], 2);
  expect(calls.lines()).toEqual([`calls{tool="${LONG}",kind="tool"} 3`]);
  const times = new HistogramSeries({ name: "times", type: "histogram", help: "", labels: ["tool"], buckets: [1] });
  times.observe([`${LONG}a`], 0.5);
  times.observe([`${LONG}b`], 2);
  expect(times.lines()).toEqual([
    `times_bucket{tool="${LONG}",le="1"} 1`,
    `times_bucket{tool="${LONG}",le="+Inf"} 2`,
    `times_sum{tool="${LONG}"} 2.5`,
    `times_count{tool="${LONG}"} 2`,
  ]);
});
