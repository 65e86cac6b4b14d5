import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Lifeline } from "../../../src/call/lifeline.ts";
import { runBounded } from "../../../src/call/run-bounded.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("a tool that may take longer than a timer can wait is not stopped at once", async () => {
  const anHour = (): Promise<string> => new Promise((resolve) => setTimeout(() => resolve("done"), 3_600_000));
  const bounds = { what: 'the tool "archive"', timeoutMs: 1000 * 3_600_000, life: new Lifeline() };
  const ran = runBounded(anHour, bounds);
  // One that is stopped must not count as rejected before somebody looks.
  ran.catch(() => undefined);
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(await ran).toBe("done");
});
