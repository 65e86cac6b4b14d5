import { expect, test } from "vitest";
import type { Lease, Used } from "../../../src/governance/store/governance-store.ts";
import { ToldBudgets } from "../../../src/governance/budget-alerts.ts";
import { counter } from "./store/store-lab.ts";

const NOVEMBER = "2026-11";
const DECEMBER = "2026-12";

/** A call that found so much spent of a budget. It holds 1 itself. */
function call(spent: number, budget: number, month: string = NOVEMBER): [Lease, Used[]] {
  const counters = [counter({ key: "else", minute: 5 }), counter({ budget, minute: 5 })];
  const rate: Used = { name: "callsPerMinute", rule: "minute", limit: 5, used: 1, resetsAtMs: undefined };
  const money: Used = { name: "monthlyBudget", rule: "budget", limit: budget, used: spent + 1, resetsAtMs: undefined };
  return [{ call: 1, counters, month, reserveMicros: 1 }, [rate, rate, money]];
}

function told(percent: number, spentMicros: number, limitMicros: number): ToldBudgets {
  const budgets = new ToldBudgets();
  budgets.add([{ key: "ada", rule: "budget", percent, spentMicros, limitMicros }], NOVEMBER);
  return budgets;
}

const RECOVERED = { key: "ada", rule: "budget" };

test("while nothing has changed nothing is told, by calls that are older than what was told either", () => {
  const budgets = told(50, 55, 100);
  expect(budgets.takeRecovered(...call(60, 100))).toEqual([]);
  expect(budgets.takeRecovered(...call(10, 100))).toEqual([]);
});

test("a raised budget undoes a share once", () => {
  const budgets = told(80, 85, 100);
  const recovered = [{ ...RECOVERED, percent: 80, spentMicros: 86, limitMicros: 1000 }];
  expect(budgets.takeRecovered(...call(86, 1000))).toEqual(recovered);
  expect(budgets.takeRecovered(...call(86, 1000))).toEqual([]);
  expect(budgets.isEmpty).toBe(true);
});

test("a smaller share that still holds is undone by the next raise", () => {
  const budgets = told(100, 100, 100);
  expect(budgets.takeRecovered(...call(100, 150))).toMatchObject([{ percent: 100, limitMicros: 150 }]);
  expect(budgets.takeRecovered(...call(110, 150))).toEqual([]);
  expect(budgets.takeRecovered(...call(110, 1000))).toMatchObject([{ percent: 50, limitMicros: 1000 }]);
});

test("a new month undoes it, and a call that is left of the old one does not", () => {
  const budgets = told(100, 100, 100);
  const recovered = [{ ...RECOVERED, percent: 100, spentMicros: 3, limitMicros: 100 }];
  expect(budgets.takeRecovered(...call(3, 100, DECEMBER))).toEqual(recovered);
  budgets.add([{ key: "ada", rule: "budget", percent: 50, spentMicros: 50, limitMicros: 100 }], DECEMBER);
  expect(budgets.takeRecovered(...call(3, 1000, NOVEMBER))).toEqual([]);
});
