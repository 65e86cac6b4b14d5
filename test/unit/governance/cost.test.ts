import { expect, test } from "vitest";
import { costOf } from "../../../src/governance/quota.ts";

const FREE = { fixed: 0, perSecond: 0, perEgressMb: 0, max: undefined };
const RAN = { durationMs: 5, egressBytes: 0, isSuspended: false, isFixedDue: true, isLost: false };

test.each([1e8, 1e303, Number.MAX_VALUE, Number.POSITIVE_INFINITY])(
  "a handler that reports %s costs what every store can add up",
  (charged) => {
    const cost = costOf(FREE, { ...RAN, charged });
    expect(cost).toBe(1e13);
    expect(Number.isSafeInteger(900 * cost)).toBe(true);
  },
);

test("what is reported below that is charged to the micro-unit", () => {
  expect(costOf(FREE, { ...RAN, charged: 9_999_999.999_999 })).toBe(9_999_999_999_999);
});
