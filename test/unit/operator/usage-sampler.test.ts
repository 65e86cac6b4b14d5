import { afterEach, expect, test, vi } from "vitest";
import { UsageSampler } from "../../../src/operator/current-state.ts";

afterEach(() => vi.useRealTimers());

test("two looks shortly after each other do not make more of a core than it is", async () => {
  vi.useFakeTimers();
  // One core is busy all the time, and the second answer is late to arrive.
  const delaysMs = [0, 90, 0];
  const sampler = new UsageSampler(async () => {
    const cpuMs = performance.now();
    await vi.advanceTimersByTimeAsync(delaysMs.shift() ?? 0);
    return { cpuMs, memoryBytes: 1 };
  });
  const lookAfter = async (ms: number): Promise<unknown> => {
    await vi.advanceTimersByTimeAsync(ms);
    await sampler.sample(["cell"]);
    return sampler.of("cell");
  };
  expect(await lookAfter(0)).toEqual({ memoryBytes: 1 });
  expect(await lookAfter(100)).toEqual({ memoryBytes: 1 });
  expect(await lookAfter(810)).toEqual({ memoryBytes: 1, cpuPercent: 100 });
});
