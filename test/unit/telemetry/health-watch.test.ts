import { expect, onTestFinished, test, vi } from "vitest";
import type { Alert } from "../../../src/telemetry/alerts.ts";
import { HealthWatch } from "../../../src/telemetry/health-watch.ts";
import type { CheckReport } from "../../../src/telemetry/health.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";

function watch() {
  const sent: Alert[] = [];
  const state: { status: CheckReport["status"] } = { status: "ok" };
  const wholeReport = async () => ({
    status: "ok" as const,
    checks: { disk: { status: state.status, message: "public", detail: `disk is ${state.status}`, latency_ms: 1 } },
  });
  const alerts = { send: (alert: Alert) => void sent.push(alert), close: () => Promise.resolve() };
  const watching = new HealthWatch({ health: { wholeReport }, alerts, logger: SILENT_LOGGER, everyMs: 3_000_000 });
  onTestFinished(() => watching.close());
  const look = async (status: CheckReport["status"]): Promise<string[]> => {
    state.status = status;
    await watching.look();
    const told = sent.splice(0);
    // It is told with the words of the look that it stands for.
    for (const { event, message } of told)
      expect(`${event}: ${message}`).toMatch(/disk_(down|degraded): disk is \1|disk_recovered: disk is ok/);
    return told.map(({ event, severity }) => `${severity} ${event}`);
  };
  return { look };
}

test("what breaks is told once, and once when it is well again", async () => {
  const { look } = watch();
  expect(await look("ok")).toEqual([]);
  expect(await look("down")).toEqual(["error disk_down"]);
  expect(await look("down")).toEqual([]);
  expect(await look("ok")).toEqual([]);
  expect(await look("ok")).toEqual(["info disk_recovered"]);
  expect(await look("ok")).toEqual([]);
});

test("what comes and goes is one trouble, not many", async () => {
  const { look } = watch();
  expect(await look("down")).toEqual(["error disk_down"]);
  for (const status of ["ok", "down", "ok", "down", "ok"] as const) expect(await look(status)).toEqual([]);
  expect(await look("ok")).toEqual(["info disk_recovered"]);
});

test("what gets worse is told anew, and what still starts is no trouble", async () => {
  const { look } = watch();
  expect(await look("starting")).toEqual([]);
  expect(await look("degraded")).toEqual(["warning disk_degraded"]);
  expect(await look("down")).toEqual(["error disk_down"]);
});

test("what swings between bad and worse is told of twice, however long it swings", async () => {
  const { look } = watch();
  expect(await look("degraded")).toEqual(["warning disk_degraded"]);
  expect(await look("down")).toEqual(["error disk_down"]);
  for (let swings = 0; swings < 10; swings += 1) {
    expect(await look("degraded")).toEqual([]);
    expect(await look("down")).toEqual([]);
  }
});

test("what gets better is told when it has been so for two looks, and not better than it was", async () => {
  const { look } = watch();
  expect(await look("down")).toEqual(["error disk_down"]);
  expect(await look("degraded")).toEqual([]);
  expect(await look("ok")).toEqual(["warning disk_degraded"]);
  expect(await look("ok")).toEqual(["info disk_recovered"]);
});

test("what stays down is told again after an hour", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const { look } = watch();
  expect(await look("down")).toEqual(["error disk_down"]);
  vi.advanceTimersByTime(3_600_001);
  expect(await look("down")).toEqual(["error disk_down"]);
});
