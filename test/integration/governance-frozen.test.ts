import { expect, test } from "vitest";
import { call, newFolder, startGoverned } from "./governance-lab.ts";

const PER_DAY = 1000;
const BUDGET = 1000;
const CALLS = 80;

/** How many calls of today and how much money are gone, as the answer to one more call tells it. */
async function usedAfterOneMore(url: string): Promise<readonly [calls: number, money: number]> {
  const { body } = await call(url, "priced", { text: "one more" });
  const quota = body.result?.["_meta"]["owlclaw/quota"];
  return [PER_DAY - quota.per_day.remaining, BUDGET - quota.budget.remaining];
}

test("what a server had counted when it froze counts for the one that takes over, and once only when it wakes", async () => {
  const root = newFolder();
  const defaults = { callsPerMinute: 1e9, callsPerDay: PER_DAY, monthlyBudget: BUDGET };
  const start = () => startGoverned({ root, handlers: "priced", governance: { defaults } });
  const frozen = await start();
  for (let id = 0; id < CALLS; id += 1) await call(frozen.url, "priced", { text: `call ${id}` });
  frozen.child.kill("SIGSTOP");
  const second = await start();
  const [calls, money] = await usedAfterOneMore(second.url);
  expect(calls).toBe(CALLS + 1);
  expect(money).toBe(CALLS + 1);
  frozen.child.kill("SIGCONT");
  expect(await usedAfterOneMore(frozen.url)).toEqual([CALLS + 2, CALLS + 2]);
  expect(await usedAfterOneMore(second.url)).toEqual([CALLS + 3, CALLS + 3]);
  await Promise.all([frozen.stop(), second.stop()]);
});
