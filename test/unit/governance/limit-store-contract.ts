import { describe, expect, test } from "vitest";
import type { Admission, Lease } from "../../../src/governance/limits/limit-store.ts";
import type { Counter } from "../../../src/governance/policy/terms.ts";
import { counter, HandClock, type LimitLab, type TestStore } from "./limits.ts";

const NOON = "2026-11-15T12:00:00Z";

export async function admit(store: TestStore, counters: Counter | Counter[], reserveMicros = 0): Promise<Admission> {
  return store.admit({ counters: Array.isArray(counters) ? counters : [counters], reserveMicros });
}

export async function lease(store: TestStore, counters: Counter, reserveMicros = 0): Promise<Lease> {
  const admission = await admit(store, counters, reserveMicros);
  if (!admission.ok) throw new Error(`refused by ${admission.refusal.rule}`);
  return admission.lease;
}

/** How many of so many calls pass. */
export async function passed(store: TestStore, counters: Counter, tries: number): Promise<number> {
  const admissions = await Promise.all(Array.from({ length: tries }, () => admit(store, counters)));
  return admissions.filter(({ ok }) => ok).length;
}

/** What every store of limits promises, whatever it counts in. */
export function limitStoreContract(lab: LimitLab): void {
  describe("calls in 60 seconds", () => {
    test("[004-R8.4] survive a restart of the server", async () => {
      const place = lab.newPlace();
      const clock = new HandClock(NOON);
      const limited = counter({ minute: 2 });
      const first = lab.open({ place, clock });
      expect(await passed(first, limited, 2)).toBe(2);
      await first.close();
      clock.pass(30_000);
      const second = lab.open({ place, clock });
      expect(await passed(second, limited, 1)).toBe(0);
      clock.pass(30_000);
      expect(await passed(second, limited, 5)).toBe(2);
      await second.close();
    });

    test("are exact over any 60 seconds, not over minutes of the clock", async () => {
      const clock = new HandClock("2026-11-15T12:00:30Z");
      const store = lab.open({ clock });
      const limited = counter({ minute: 3 });
      expect(await passed(store, limited, 2)).toBe(2);
      clock.pass(50_000);
      expect(await passed(store, limited, 5)).toBe(1);
      clock.pass(9999);
      expect(await passed(store, limited, 5)).toBe(0);
      clock.pass(1);
      expect(await passed(store, limited, 5)).toBe(2);
      await store.close();
    });

    test("a refusal says how long to wait, and then the call passes", async () => {
      const clock = new HandClock(NOON);
      const store = lab.open({ clock });
      const limited = counter({ minute: 2 });
      await passed(store, limited, 1);
      clock.pass(20_000);
      await passed(store, limited, 1);
      const refused = await admit(store, limited);
      expect(refused).toMatchObject({
        ok: false,
        refusal: { name: "callsPerMinute", rule: "minute", limit: 2, used: 2, retryAfterMs: 40_000 },
      });
      clock.pass(39_999);
      expect((await admit(store, limited)).ok).toBe(false);
      clock.pass(1);
      expect((await admit(store, limited)).ok).toBe(true);
      await store.close();
    });

    test("no step of the wall clock lets more through, and none locks anybody out", async () => {
      const clock = new HandClock(NOON);
      const store = lab.open({ clock });
      const limited = counter({ minute: 2 });
      expect(await passed(store, limited, 2)).toBe(2);
      clock.wall += 3_600_000;
      expect(await passed(store, limited, 1)).toBe(0);
      clock.wall -= 7_200_000;
      expect(await passed(store, limited, 1)).toBe(0);
      clock.pass(60_000);
      expect(await passed(store, limited, 5)).toBe(2);
      await store.close();
    });
  });

  describe("calls in a day", () => {
    test.each([
      ["UTC", "2026-11-15T23:59:59.999Z", "2026-11-16T00:00:00.000Z"],
      ["Asia/Tokyo", "2026-11-15T14:59:59.999Z", "2026-11-15T15:00:00.000Z"],
      ["Europe/Berlin (25 hours)", "2026-10-25T22:59:59.999Z", "2026-10-25T23:00:00.000Z"],
      ["Europe/Berlin (23 hours)", "2026-03-29T21:59:59.999Z", "2026-03-29T22:00:00.000Z"],
      ["Pacific/Apia (skipped the 30th)", "2011-12-30T09:59:59.999Z", "2011-12-30T10:00:00.000Z"],
    ])("[004-R8.4] in %s end at local midnight", async (zone, last, next) => {
      const clock = new HandClock(last);
      const store = lab.open({ clock, timeZone: zone.split(" ", 1)[0] ?? "UTC" });
      const limited = counter({ day: 2 });
      expect(await passed(store, limited, 3)).toBe(2);
      expect(await admit(store, limited)).toMatchObject({ refusal: { resetsAtMs: Date.parse(next), retryAfterMs: 1 } });
      clock.pass(1);
      expect(await passed(store, limited, 3)).toBe(2);
      await store.close();
    });

    test("a clock set forward and back again forgets nothing", async () => {
      const clock = new HandClock(NOON);
      const store = lab.open({ clock });
      const limited = counter({ day: 2 });
      expect(await passed(store, limited, 2)).toBe(2);
      clock.wall += 40 * 86_400_000;
      expect(await passed(store, limited, 1)).toBe(1);
      clock.wall -= 40 * 86_400_000;
      expect(await passed(store, limited, 1)).toBe(0);
      await store.close();
    });
  });

  describe("calls at a time", () => {
    test("give their place back when they are settled", async () => {
      const store = lab.open();
      const limited = counter({ atOnce: 2 });
      const first = await lease(store, limited);
      await lease(store, limited);
      expect(await admit(store, limited)).toMatchObject({ refusal: { name: "concurrency", used: 2, limit: 2 } });
      await store.settle(first, 0);
      expect((await admit(store, limited)).ok).toBe(true);
      await store.close();
    });

    test("are counted over all processes, and those of a dead one are free", async () => {
      const place = lab.newPlace();
      const mine = lab.open({ place });
      const other = lab.open({ place });
      const limited = counter({ atOnce: 3, budget: 10 });
      await lease(other, limited, 4);
      await lease(other, limited, 4);
      await lease(mine, limited, 2);
      expect(await admit(mine, limited)).toMatchObject({ refusal: { name: "concurrency", used: 3 } });
      await lab.kill(other);
      const again = lab.open({ place });
      expect((await admit(again, limited, 8)).ok).toBe(true);
      expect(await admit(again, limited, 1)).toMatchObject({ refusal: { name: "monthlyBudget", used: 10 } });
      await again.close();
      await mine.close();
    });
  });

  describe("budgets", () => {
    test("[004-R8.2] are reserved before, settled after, and never overspent by calls side by side", async () => {
      const store = lab.open();
      const limited = counter({ budget: 1000 });
      const all = await Promise.all(Array.from({ length: 50 }, () => admit(store, limited, 30)));
      expect(all.filter(({ ok }) => ok)).toHaveLength(33);
      const [first] = all;
      if (first?.ok !== true) throw new Error("the first call fits");
      await store.settle(first.lease, 5);
      expect((await admit(store, limited, 35)).ok).toBe(true);
      expect(await admit(store, limited, 1)).toMatchObject({ ok: false, refusal: { used: 1000, limit: 1000 } });
      await store.close();
    });

    test("[004-R8.2] that are used up, or more, are the end for all that may cost anything, and for nothing else", async () => {
      const store = lab.open();
      const limited = counter({ budget: 100 });
      await store.settle(await lease(store, limited, 1), 99);
      const last = await lease(store, limited, 1);
      expect(await admit(store, limited, 1)).toMatchObject({
        ok: false,
        refusal: { name: "monthlyBudget", used: 100 },
      });
      await store.settle(last, 50);
      expect(await admit(store, limited, 1)).toMatchObject({
        ok: false,
        refusal: { name: "monthlyBudget", used: 149 },
      });
      expect((await admit(store, limited, 0)).ok).toBe(true);
      await store.close();
    });

    test("start anew with the month, and a call that runs over its end is booked where it began", async () => {
      const clock = new HandClock("2026-11-30T23:59:59Z");
      const store = lab.open({ clock });
      const limited = counter({ budget: 100 });
      const long = await lease(store, limited, 60);
      clock.pass(2000);
      await store.settle(await lease(store, limited, 100), 0);
      await store.settle(long, 60);
      clock.wall = Date.parse("2026-11-30T12:00:00Z");
      expect(await admit(store, limited, 41)).toMatchObject({ ok: false, refusal: { used: 60 } });
      await store.close();
    });

    test("tell once of each threshold that a call passes", async () => {
      const store = lab.open();
      const limited = counter({ budget: 100 });
      const spend = async (micros: number): Promise<number[]> =>
        (await store.settle(await lease(store, limited, micros), micros)).map(({ percent }) => percent);
      expect(await spend(49)).toEqual([]);
      expect(await spend(1)).toEqual([50]);
      expect(await spend(49)).toEqual([80]);
      expect(await spend(1)).toEqual([100]);
      await store.close();
    });
  });

  test("several counters are taken together or not at all", async () => {
    const store = lab.open();
    const wide = counter({ key: "wide", minute: 10 });
    const narrow = counter({ key: "narrow", minute: 1 });
    expect((await admit(store, [wide, narrow])).ok).toBe(true);
    expect(await admit(store, [wide, narrow])).toMatchObject({ ok: false, refusal: { used: 1 } });
    expect(await store.usage([wide, narrow])).toMatchObject([{ used: 1 }, { used: 1 }]);
    await store.close();
  });

  test("a store that is closed says no", async () => {
    const store = lab.open();
    await store.close();
    await expect(admit(store, counter({ minute: 1 }))).rejects.toMatchObject({ kind: "store_unavailable" });
  });
}
