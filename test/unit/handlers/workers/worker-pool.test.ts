import { describe, expect, test } from "vitest";
import { RestartBackoff } from "../../../../src/handlers/workers/worker-pool.ts";

const CRASHED = { livedMs: 5, wasReady: true, isForCall: false };
const NEVER_STARTED = { livedMs: 5, wasReady: false, isForCall: false };
const STOPPED = { livedMs: 5, wasReady: true, isForCall: true };

describe("the pause before the next worker", () => {
  test("is none after calls that took too long, however many", () => {
    const pause = new RestartBackoff();
    expect([1, 2, 3, 4].map((nowMs) => pause.ended(STOPPED, nowMs))).toEqual([0, 0, 0, 0]);
  });

  test("doubles while workers crash, and stays short enough for those who wait", () => {
    const pause = new RestartBackoff();
    expect([1, 2, 3, 4, 5, 6].map((nowMs) => pause.ended(CRASHED, nowMs))).toEqual([100, 200, 400, 800, 1000, 1000]);
  });

  test("grows longer while workers cannot start at all", () => {
    const pause = new RestartBackoff();
    const pauses = Array.from({ length: 9 }, (_, index) => pause.ended(NEVER_STARTED, index));
    expect(pauses).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
  });

  test("counts from the end of the last worker, not from when the next is needed", () => {
    const pause = new RestartBackoff();
    pause.ended(CRASHED, 1000);
    expect([1000, 1040, 1100, 5000].map((nowMs) => pause.leftMs(nowMs))).toEqual([100, 60, 0, 0]);
  });

  test("is forgotten when workers have been well for a while", () => {
    const pause = new RestartBackoff();
    for (const nowMs of [1, 2, 3]) pause.ended(CRASHED, nowMs);
    expect(pause.leftMs(20_000)).toBe(0);
    expect(pause.ended(CRASHED, 20_001)).toBe(100);
    expect(pause.ended({ ...CRASHED, livedMs: 60_000 }, 20_002)).toBe(0);
  });
});
