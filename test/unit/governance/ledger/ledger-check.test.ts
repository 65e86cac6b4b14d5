import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import type { LedgerReader } from "../../../../src/governance/ledger/store.ts";
import { LedgerCheck } from "../../../../src/governance/ledger/ledger-check.ts";
import { SILENT_LOGGER } from "../../../../src/telemetry/logger.ts";

const HOUR_MS = 3_600_000;
const FIRST_MS = 60_000;
const INTACT = {
  isIntact: true,
  rows: 0,
  firstSeq: 1,
  head: { seq: 0, hash: "" },
  checkpoints: 0,
  removed: undefined,
  acknowledged: [],
  problems: [],
  problemCount: 0,
};

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test.each([24, 597, 8760])("every %i hours means that, longer than a timer can wait at once or not", async (hours) => {
  const verify = vi.fn<LedgerReader["verify"]>().mockResolvedValue(INTACT);
  const check = new LedgerCheck({ ledger: { reader: { verify } }, everyHours: hours, logger: SILENT_LOGGER });
  onTestFinished(() => check.close());
  check.start();
  await vi.advanceTimersByTimeAsync(FIRST_MS);
  expect(verify).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(hours * HOUR_MS - 1);
  expect(verify).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(verify).toHaveBeenCalledTimes(2);
  check.close();
  await vi.advanceTimersByTimeAsync(2 * hours * HOUR_MS);
  expect(verify).toHaveBeenCalledTimes(2);
});
