import { expect, test } from "vitest";
import type { LimitEngine } from "../../src/governance/limits/shared/limit-engine.ts";
import { SharedLimitStore } from "../../src/governance/limits/shared/shared-limit-store.ts";
import { callsInLivesHeldAgainstModel } from "../unit/governance/limit-model.ts";
import { admit, lease, limitStoreContract, passed } from "../unit/governance/limit-store-contract.ts";
import { counter, HandClock, type LimitLab, type StoreOptions } from "../unit/governance/limits.ts";

const NOON = "2026-11-15T12:00:00Z";
/** Days pass in these tests at once: only where a test is about it does a server lose its places by time. */
const FOR_EVER_MS = 1e14;

export interface SharedLimitLab extends LimitLab {
  open(options?: StoreOptions & { readonly leaseMs?: number }): SharedLimitStore;
}

/** Stores on one engine; each place is a space of its own in it. */
export function sharedLimitLab(engine: LimitEngine): SharedLimitLab {
  let places = 0;
  const newPlace = (): string => `test:${++places}:`;
  return {
    newPlace,
    open: ({ place = newPlace(), clock, timeZone = "UTC", leaseMs = FOR_EVER_MS } = {}) =>
      new SharedLimitStore({
        engine,
        timeZone: () => timeZone,
        leaseMs,
        space: place,
        ...(clock !== undefined && { clock }),
      }),
    kill: async (store) => {
      if (!(store instanceof SharedLimitStore)) throw new TypeError("not ours");
      store.abandon();
      // What the passing of its lease does.
      for (let place = 1; place <= places; place += 1) await engine.forget(`test:${place}:`, [store.holder]);
    },
  };
}

/** What holds wherever several servers count together. */
export function sharedLimitContract(name: string, open: () => SharedLimitLab): void {
  const lab: SharedLimitLab = {
    newPlace: () => open().newPlace(),
    open: (options) => open().open(options),
    kill: (store) => open().kill(store),
  };

  limitStoreContract(lab);

  test(`[004-R8.4] two servers on one ${name} never let through what the model forbids, nor refuse what it allows`, async () => {
    // A run in which nothing passes would prove nothing.
    expect(await callsInLivesHeldAgainstModel(lab, { numRuns: 25 })).toBeGreaterThan(5);
  }, 120_000);

  test("by the store's own clock and day, whatever this machine's says", async () => {
    const store = lab.open();
    const limited = counter({ minute: 3, day: 5 });
    expect(await passed(store, limited, 10)).toBe(3);
    expect(await admit(store, limited)).toMatchObject({ refusal: { name: "callsPerMinute", used: 3 } });
    await store.close();
  });

  test("a server that gives no sign of life for a lease loses its places and reservations; one that comes back goes on", async () => {
    const place = lab.newPlace();
    const clock = new HandClock(NOON);
    const silent = lab.open({ place, clock, leaseMs: 15_000 });
    const other = lab.open({ place, clock, leaseMs: 15_000 });
    const limited = counter({ atOnce: 2, budget: 100 });
    const held = await lease(silent, limited, 60);
    await lease(silent, limited, 40);
    expect(await admit(other, limited)).toMatchObject({ refusal: { name: "concurrency", used: 2 } });
    clock.pass(14_999);
    expect(await admit(other, limited)).toMatchObject({ refusal: { name: "concurrency", used: 2 } });
    clock.pass(1);
    const taken = await lease(other, limited, 100);
    // What the silent one settles now is booked, and takes nothing from those who live.
    await silent.settle(held, 60);
    expect(await other.usage([limited])).toMatchObject([{ used: 1 }, { used: 160 }]);
    await other.settle(taken, 0);
    expect(await silent.usage([limited])).toMatchObject([{ used: 0 }, { used: 60 }]);
    await Promise.all([silent.close(), other.close()]);
  });

  test("amounts as large as the configuration allows are counted to the last micro-unit", async () => {
    const store = lab.open();
    const limited = counter({ budget: 1e15 });
    await store.settle(await lease(store, limited, 1e15 - 1), 1e15 - 1);
    expect(await store.usage([limited])).toMatchObject([{ used: 1e15 - 1 }]);
    expect((await admit(store, limited, 1)).ok).toBe(true);
    expect((await admit(store, limited, 1)).ok).toBe(false);
    await store.close();
  });
}
