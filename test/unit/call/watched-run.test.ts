import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WatchedRun } from "../../../src/call/watched-run.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function begun(): WatchedRun {
  const run = new WatchedRun();
  run.began(() => undefined);
  return run;
}

test("who waits for a run hears of its end", async () => {
  const run = begun();
  const ends = run.endsWithin(1000);
  run.ended();
  expect([await ends, run.isRunning, run.isLost]).toEqual([true, false, false]);
  expect(await run.endsWithin(1000)).toBe(true);
});

test("nobody knows what a run costs that does not end in time, or was ended by force", async () => {
  const endless = begun();
  const ends = endless.endsWithin(1000);
  await vi.advanceTimersByTimeAsync(1000);
  expect([await ends, endless.isLost]).toEqual([false, true]);
  const ended = begun();
  ended.lost();
  ended.ended();
  expect([await ended.endsWithin(1000), ended.isLost]).toEqual([true, true]);
});

test("one who gave up waiting and asks again hears of the end", async () => {
  const run = begun();
  const first = run.endsWithin(10);
  await vi.advanceTimersByTimeAsync(10);
  const second = run.endsWithin(1000);
  run.ended();
  expect([await first, await second]).toEqual([false, true]);
});
