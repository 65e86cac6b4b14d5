import fc from "fast-check";
import { expect, test } from "vitest";
import type { Lease } from "../../../src/governance/limits/limit-store.ts";
import type { SqliteLimitStore } from "../../../src/governance/limits/sqlite-limit-store.ts";
import { counter, HandClock, newPath, openStore } from "./limits.ts";

/** The plainest thing that could be right: lists of everything, looked through from the start. */
class Model {
  readonly calls: { readonly client: string; readonly steady: number; readonly day: string }[] = [];
  readonly running: Running[] = [];
  readonly spent: { readonly client: string; readonly month: string; readonly micros: number }[] = [];
  caps = { minute: 3, day: 8, atOnce: 3, budget: 100 };

  allows(client: string, reserve: number, clock: HandClock): boolean {
    const mine = this.calls.filter((call) => call.client === client);
    const inWindow = mine.filter(({ steady }) => steady > clock.steady - 60_000).length;
    const today = mine.filter(({ day }) => day === dayOf(clock)).length;
    const held = this.running.filter((each) => each.client === client);
    const sum = (items: readonly { readonly micros: number; readonly month: string }[]): number =>
      items.filter(({ month }) => month === monthOf(clock)).reduce((total, { micros }) => total + micros, 0);
    const used = sum(this.spent.filter((each) => each.client === client)) + sum(held);
    const { minute, day, atOnce, budget } = this.caps;
    return inWindow < minute && today < day && held.length < atOnce && (reserve === 0 || used + reserve <= budget);
  }
}

interface Running {
  readonly client: string;
  readonly server: number;
  readonly month: string;
  readonly micros: number;
  readonly lease: Lease;
}

interface Real {
  readonly path: string;
  readonly clock: HandClock;
  readonly dead: Set<number>;
  readonly stores: SqliteLimitStore[];
}

type Step = (model: Model, real: Real) => Promise<void>;

class Command implements fc.AsyncCommand<Model, Real> {
  readonly #name: string;
  readonly #step: Step;
  constructor(name: string, step: Step) {
    this.#name = name;
    this.#step = step;
  }
  check(): boolean {
    return true;
  }
  run(model: Model, real: Real): Promise<void> {
    return this.#step(model, real);
  }
  toString(): string {
    return this.#name;
  }
}

const client = fc.constantFrom("ada", "bob");
const server = fc.constantFrom(0, 1);

const call = fc.tuple(client, server, fc.constantFrom(0, 0, 10, 40)).map(
  ([who, at, reserve]) =>
    new Command(`call(${who}, server ${at}, ${reserve})`, async (model, { stores, clock }) => {
      const isAllowed = model.allows(who, reserve, clock);
      const { minute, day, atOnce, budget } = model.caps;
      const counters = [counter({ key: who, minute, day, atOnce, budget })];
      const admission = await stores[at]!.admit({ counters, reserveMicros: reserve });
      // Thrown, so that the search for the shortest way there sees it.
      if (admission.ok !== isAllowed) throw new Error(`the model ${isAllowed ? "allows" : "forbids"} it`);
      if (!admission.ok) return;
      model.calls.push({ client: who, steady: clock.steady, day: dayOf(clock) });
      model.running.push({ client: who, server: at, month: monthOf(clock), micros: reserve, lease: admission.lease });
    }),
);

const settle = fc.tuple(fc.nat(20), fc.constantFrom(0, 5, 10, 60)).map(
  ([index, cost]) =>
    new Command(`settle(${index}, ${cost})`, async (model, { stores }) => {
      const [ended] = model.running.splice(index % Math.max(1, model.running.length), 1);
      if (ended === undefined) return;
      await stores[ended.server]!.settle(ended.lease, cost);
      model.spent.push({ client: ended.client, month: ended.month, micros: cost });
    }),
);

const pass = fc
  .constantFrom(1, 700, 20_000, 59_999, 60_000, 3_600_000)
  .map((ms) => new Command(`pass(${ms})`, async (_model, { clock }) => clock.pass(ms)));

const setClock = fc.constantFrom(-86_400_000, -61_000, 61_000, 86_400_000, 31 * 86_400_000).map(
  (ms) =>
    new Command(`setClock(${ms})`, async (_model, { clock }) => {
      clock.wall += ms;
    }),
);

const restart = fc.tuple(server, fc.boolean()).map(
  ([at, isKilled]) =>
    new Command(`${isKilled ? "kill" : "restart"}(${at})`, async (model, { stores, dead, clock, path }) => {
      if (isKilled) {
        dead.add(stores[at]!.processId);
        stores[at]!.abandon();
        // The looking at others is not done for every refusal: a moment later it is.
        clock.pass(200);
      } else {
        await stores[at]!.close();
      }
      stores[at] = openStore({ path, clock, dead });
      const left = model.running.filter((each) => each.server !== at);
      model.running.splice(0, model.running.length, ...left);
    }),
);

const reload = fc
  .record({
    minute: fc.integer({ min: 1, max: 5 }),
    day: fc.integer({ min: 1, max: 12 }),
    atOnce: fc.integer({ min: 1, max: 4 }),
  })
  .map(
    (caps) =>
      new Command(`reload(${JSON.stringify(caps)})`, async (model) => void (model.caps = { ...model.caps, ...caps })),
  );

test("[004-R8.4] two servers on one store never let through what the model forbids, nor refuse what it allows", async () => {
  let longest = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.commands([call, call, call, settle, settle, pass, setClock, restart, reload], {
        maxCommands: 60,
        size: "max",
      }),
      async (commands) => {
        const path = newPath();
        const clock = new HandClock("2026-11-15T23:58:00Z");
        const dead = new Set<number>();
        const stores = [openStore({ path, clock, dead }), openStore({ path, clock, dead })];
        try {
          const model = new Model();
          await fc.asyncModelRun(() => ({ model, real: { path, clock, dead, stores } }), commands);
          longest = Math.max(longest, model.calls.length);
        } finally {
          await Promise.all(stores.map((store) => store.close()));
        }
      },
    ),
    { numRuns: 60 },
  );
  // A run in which nothing passes would prove nothing.
  expect(longest).toBeGreaterThan(5);
}, 60_000);

function dayOf({ wall }: HandClock): string {
  return new Date(wall).toISOString().slice(0, 10);
}

function monthOf(clock: HandClock): string {
  return dayOf(clock).slice(0, 7);
}
