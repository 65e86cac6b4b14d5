import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { FloodGuard } from "../../../src/governance/flood-guard.ts";
import { FloodDelay } from "../../../src/transport/stdio/line-reader.ts";

test("a caller that can be made to wait waits for what it took too much, and never more than a second", () => {
  let nowMs = 0;
  const guard = new FloodGuard(() => nowMs);
  const limit = { perSecond: 10, burst: 3 };
  const delays = (count: number): number[] => Array.from({ length: count }, () => guard.delayMs("ada", limit));
  expect(delays(5)).toEqual([0, 0, 0, 100, 200]);
  expect(guard.delayMs("bob", limit)).toBe(0);
  expect(delays(50).at(-1)).toBe(1000);
  nowMs = 2000;
  expect(delays(1)).toEqual([0]);
  expect(guard.delayMs("ada", undefined)).toBe(0);
});

describe("a flooded line", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  test("is not read for a while, then again, and not after the end", async () => {
    const input = new PassThrough();
    const seen: string[] = [];
    let delayMs = 500;
    const floodDelay = new FloodDelay(input, () => delayMs);
    input.on("data", (chunk: Buffer) => {
      seen.push(chunk.toString());
      floodDelay.count();
      floodDelay.apply();
    });
    const write = async (text: string): Promise<void> => {
      input.write(text);
      await new Promise(setImmediate);
    };
    await write("one");
    await write("two");
    vi.advanceTimersByTime(499);
    await new Promise(setImmediate);
    expect([seen, input.isPaused()]).toEqual([["one"], true]);
    delayMs = 0;
    vi.advanceTimersByTime(1);
    await new Promise(setImmediate);
    expect([seen, input.isPaused()]).toEqual([["one", "two"], false]);
    floodDelay.stop();
    await write("three");
    expect([seen, input.isPaused()]).toEqual([["one", "two"], true]);
  });
});
