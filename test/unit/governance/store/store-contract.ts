import { describe, expect, test } from "vitest";
import {
  admit,
  counter,
  draft,
  HandClock,
  lease,
  passed,
  rowsOf,
  settle,
  type StoreLab,
  UNKNOWN,
} from "./store-lab.ts";

const NOON = "2026-11-15T12:00:00Z";

/** What every governance store promises, whatever it counts in. */
export function storeContract(lab: StoreLab): void {
  describe("calls in 60 seconds", () => {
    test("[004-R8.4] survive a restart of the server", async () => {
      const place = lab.newPlace();
      const clock = new HandClock(NOON);
      const limited = counter({ minute: 2 });
      const first = await lab.open({ place, clock });
      expect(await passed(first, limited, 2)).toBe(2);
      await first.close();
      clock.pass(30_000);
      const second = await lab.open({ place, clock });
      expect(await passed(second, limited, 1)).toBe(0);
      clock.pass(30_000);
      expect(await passed(second, limited, 5)).toBe(2);
      await second.close();
    });

    test("are exact over any 60 seconds, not over minutes of the clock", async () => {
      const clock = new HandClock("2026-11-15T12:00:30Z");
      const store = await lab.open({ clock });
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
      const store = await lab.open({ clock });
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

    test("a refusal under a limit that was lowered says when enough calls are older than a minute", async () => {
      const clock = new HandClock(NOON);
      const store = await lab.open({ clock });
      for (let call = 0; call < 5; call += 1) {
        expect((await admit(store, counter({ minute: 5 }))).ok).toBe(true);
        clock.pass(1000);
      }
      // Of the five calls, four have to be gone: the fourth came 2 s ago.
      expect(await admit(store, counter({ minute: 2 }))).toMatchObject({ refusal: { used: 5, retryAfterMs: 58_000 } });
      clock.pass(57_999);
      expect((await admit(store, counter({ minute: 2 }))).ok).toBe(false);
      clock.pass(1);
      expect((await admit(store, counter({ minute: 2 }))).ok).toBe(true);
      await store.close();
    });

    test("no step of the wall clock lets more through, and none locks anybody out", async () => {
      const clock = new HandClock(NOON);
      const store = await lab.open({ clock });
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
      const store = await lab.open({ clock, timeZone: zone.split(" ", 1)[0] ?? "UTC" });
      const limited = counter({ day: 2 });
      expect(await passed(store, limited, 3)).toBe(2);
      expect(await admit(store, limited)).toMatchObject({ refusal: { resetsAtMs: Date.parse(next), retryAfterMs: 1 } });
      clock.pass(1);
      expect(await passed(store, limited, 3)).toBe(2);
      await store.close();
    });

    test("a clock set forward and back again forgets nothing", async () => {
      const clock = new HandClock(NOON);
      const store = await lab.open({ clock });
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
      const store = await lab.open();
      const limited = counter({ atOnce: 2 });
      const first = await lease(store, limited);
      await lease(store, limited);
      expect(await admit(store, limited)).toMatchObject({ refusal: { name: "concurrency", used: 2, limit: 2 } });
      await settle(store, first);
      expect((await admit(store, limited)).ok).toBe(true);
      await store.close();
    });

    test("are counted over all processes, and those of a dead one are free", async () => {
      const place = lab.newPlace();
      const mine = await lab.open({ place });
      const other = await lab.open({ place });
      const limited = counter({ atOnce: 3, budget: 10 });
      await lease(other, limited, { reserve: 4 });
      await lease(other, limited, { reserve: 4 });
      await lease(mine, limited, { reserve: 2 });
      expect(await admit(mine, limited)).toMatchObject({ refusal: { name: "concurrency", used: 3 } });
      await lab.kill(other);
      const again = await lab.open({ place });
      expect(await again.recover()).toBe(2);
      expect((await admit(again, limited, { reserve: 8 })).ok).toBe(true);
      expect(await admit(again, limited, { reserve: 1 })).toMatchObject({
        refusal: { name: "monthlyBudget", used: 10 },
      });
      await again.close();
      await mine.close();
    });
  });

  describe("budgets", () => {
    test("[004-R8.2] are reserved before, settled after, and never overspent by calls side by side", async () => {
      const store = await lab.open();
      const limited = counter({ budget: 1000 });
      const all = await Promise.all(Array.from({ length: 50 }, () => admit(store, limited, { reserve: 30 })));
      expect(all.filter(({ ok }) => ok)).toHaveLength(33);
      const [first] = all;
      if (first?.ok !== true) throw new Error("the first call fits");
      await settle(store, first.lease, 5);
      expect((await admit(store, limited, { reserve: 35 })).ok).toBe(true);
      expect(await admit(store, limited, { reserve: 1 })).toMatchObject({
        ok: false,
        refusal: { used: 1000, limit: 1000 },
      });
      await store.close();
    });

    test("[004-R8.2] that are used up, or more, are the end for all that may cost anything, and for nothing else", async () => {
      const store = await lab.open();
      const limited = counter({ budget: 100 });
      await settle(store, await lease(store, limited, { reserve: 1 }), 99);
      const last = await lease(store, limited, { reserve: 1 });
      expect(await admit(store, limited, { reserve: 1 })).toMatchObject({
        ok: false,
        refusal: { name: "monthlyBudget", used: 100 },
      });
      await settle(store, last, 50);
      expect(await admit(store, limited, { reserve: 1 })).toMatchObject({
        ok: false,
        refusal: { name: "monthlyBudget", used: 149 },
      });
      expect((await admit(store, limited, { reserve: 0 })).ok).toBe(true);
      await store.close();
    });

    test("start anew with the month, and a call that runs over its end is booked where it began", async () => {
      const clock = new HandClock("2026-11-30T23:59:59Z");
      const store = await lab.open({ clock });
      const limited = counter({ budget: 100 });
      const long = await lease(store, limited, { reserve: 60 });
      clock.pass(2000);
      await settle(store, await lease(store, limited, { reserve: 100 }));
      await settle(store, long, 60);
      clock.wall = Date.parse("2026-11-30T12:00:00Z");
      expect(await admit(store, limited, { reserve: 41 })).toMatchObject({ ok: false, refusal: { used: 60 } });
      await store.close();
    });

    test("are told of with the cost of each call, one after the other also in a batch", async () => {
      const store = await lab.open();
      const limited = counter({ budget: 100 });
      const [first, second, free] = [
        await lease(store, limited),
        await lease(store, limited),
        await lease(store, limited),
      ];
      const { spendings } = await store.settle([
        { call: first.call, costMicros: 49 },
        { call: free.call },
        { call: second.call, costMicros: 2 },
      ]);
      expect(spendings).toEqual([
        [{ key: "ada", beforeMicros: 0, afterMicros: 49 }],
        [],
        [{ key: "ada", beforeMicros: 49, afterMicros: 51 }],
      ]);
      await store.close();
    });

    test("amounts as large as the configuration allows are counted to the last micro-unit", async () => {
      const store = await lab.open();
      const limited = counter({ budget: 1e15 });
      await settle(store, await lease(store, limited, { reserve: 1e15 - 1 }), 1e15 - 1);
      expect(await store.usage([limited])).toMatchObject([{ used: 1e15 - 1 }]);
      expect((await admit(store, limited, { reserve: 1 })).ok).toBe(true);
      expect((await admit(store, limited, { reserve: 1 })).ok).toBe(false);
      await store.close();
    });
  });

  describe("a settlement", () => {
    test("releases, books and records in one", async () => {
      const store = await lab.open();
      const limited = counter({ atOnce: 1, budget: 100 });
      const { call } = await lease(store, limited, { reserve: 60, draft: UNKNOWN });
      const { seqs } = await store.settle([
        { draft: draft() },
        { call, costMicros: 10, draft: draft({ costMicros: 10 }) },
      ]);
      expect(seqs).toEqual([1, 2]);
      expect(await store.get(2)).toMatchObject({ outcome: "ok", cost_micros: 10 });
      expect(await store.usage([limited])).toMatchObject([{ used: 0 }, { used: 10 }]);
      expect(await store.verify({})).toMatchObject({ isIntact: true, rows: 2 });
      await store.close();
    });

    test("that comes twice counts once, and has one row", async () => {
      const store = await lab.open();
      const limited = counter({ atOnce: 3, budget: 100 });
      const other = await lease(store, limited, { reserve: 20 });
      const { call } = await lease(store, limited, { reserve: 60 });
      const settlement = { call, costMicros: 10, draft: draft({ costMicros: 10 }) };
      expect(await store.settle([settlement])).toMatchObject({ seqs: [1] });
      expect(await store.settle([settlement, { draft: draft() }])).toMatchObject({ seqs: [0, 2], spendings: [[], []] });
      expect(await store.usage([limited])).toMatchObject([{ used: 1 }, { used: 30 }]);
      await settle(store, other);
      await store.close();
    });

    test("of a call whose work goes on keeps what it holds, and leaves another row behind", async () => {
      const place = lab.newPlace();
      const store = await lab.open({ place });
      const limited = counter({ atOnce: 1, budget: 100 });
      const { call } = await lease(store, limited, { reserve: 60, draft: UNKNOWN });
      const late = draft({ outcome: "unknown", args: {}, flags: ["ran_on"] });
      expect(await store.settle([{ call, draft: draft({ outcome: "timeout" }), goesOnAs: late }])).toMatchObject({
        seqs: [1],
      });
      expect(await store.usage([limited])).toMatchObject([{ used: 1 }, { used: 60 }]);
      await lab.kill(store);
      const next = await lab.open({ place });
      expect(await next.recover()).toBe(1);
      expect(await next.get(2)).toMatchObject({ outcome: "unknown", flags: '["ran_on"]', cost_micros: 60 });
      expect(await next.usage([limited])).toMatchObject([{ used: 0 }, { used: 60 }]);
      await next.close();
    });
  });

  describe("a call that had begun when its process died", () => {
    test("has a row with the outcome unknown, and has cost what was reserved", async () => {
      const place = lab.newPlace();
      const killed = await lab.open({ place });
      const limited = counter({ atOnce: 5, budget: 100 });
      await lease(killed, limited, { reserve: 7, draft: UNKNOWN });
      await lease(killed, limited, { reserve: 9 });
      await settle(killed, await lease(killed, limited, { reserve: 5, draft: UNKNOWN }), 3);
      await lab.kill(killed);
      const next = await lab.open({ place });
      expect(await next.recover()).toBe(2);
      expect(await next.recover()).toBe(0);
      // The one without a row was not running: it waited for an approval.
      expect((await rowsOf(next, "unknown")).map((row) => row.cost_micros)).toEqual([7]);
      expect(await next.usage([limited])).toMatchObject([{ used: 0 }, { used: 10 }]);
      expect(await next.verify({})).toMatchObject({ isIntact: true });
      await next.close();
    });

    test("is settled once, by however many processes find it at once", async () => {
      const place = lab.newPlace();
      const killed = await lab.open({ place });
      const limited = counter({ atOnce: 50, budget: 1000 });
      for (let call = 0; call < 20; call += 1) await lease(killed, limited, { reserve: 2, draft: UNKNOWN });
      await lab.kill(killed);
      const stores = await Promise.all([1, 2, 3].map(() => lab.open({ place })));
      await Promise.all(stores.map((store) => store.recover()));
      expect(await rowsOf(stores[0]!, "unknown")).toHaveLength(20);
      expect(await stores[0]!.usage([limited])).toMatchObject([{ used: 0 }, { used: 40 }]);
      await Promise.all(stores.map((store) => store.close()));
    });

    test("is not settled while its process lives, nor by itself", async () => {
      const place = lab.newPlace();
      const store = await lab.open({ place });
      const other = await lab.open({ place });
      const { call } = await lease(store, counter({ atOnce: 1 }), { draft: UNKNOWN });
      expect([await store.recover(), await other.recover()]).toEqual([0, 0]);
      expect(await store.settle([{ call, draft: draft() }])).toMatchObject({ seqs: [1] });
      await Promise.all([store.close(), other.close()]);
    });

    test("stays ended when its process was taken for dead and is not, and the process goes on", async () => {
      const place = lab.newPlace();
      const asleep = await lab.open({ place });
      const limited = counter({ atOnce: 2, budget: 100 });
      const { call } = await lease(asleep, limited, { reserve: 30, draft: UNKNOWN });
      await lab.bury(asleep);
      const other = await lab.open({ place });
      expect(await other.recover()).toBe(1);
      expect(await asleep.settle([{ call, costMicros: 10, draft: draft() }])).toMatchObject({ seqs: [0] });
      const next = await lease(asleep, limited, { reserve: 30, draft: UNKNOWN });
      expect(next.call).not.toBe(call);
      expect(await other.usage([limited])).toMatchObject([{ used: 1 }, { used: 60 }]);
      await asleep.settle([{ call: next.call, costMicros: 10, draft: draft() }]);
      expect(await other.usage([limited])).toMatchObject([{ used: 0 }, { used: 40 }]);
      await Promise.all([asleep.close(), other.close()]);
    });
  });

  test("several counters are taken together or not at all", async () => {
    const store = await lab.open();
    const wide = counter({ key: "wide", minute: 10 });
    const narrow = counter({ key: "narrow", minute: 1 });
    expect((await admit(store, [wide, narrow])).ok).toBe(true);
    expect(await admit(store, [wide, narrow])).toMatchObject({ ok: false, refusal: { used: 1 } });
    expect(await store.usage([wide, narrow])).toMatchObject([{ used: 1 }, { used: 1 }]);
    await store.close();
  });

  test("a store that is closed says no", async () => {
    const store = await lab.open();
    await store.close();
    await expect(admit(store, counter({ minute: 1 }))).rejects.toMatchObject({ kind: "store_unavailable" });
  });
}
