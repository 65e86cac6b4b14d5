import fc from "fast-check";
import type { Lease } from "../../../../src/governance/store/governance-store.ts";
import type { LedgerReader } from "../../../../src/governance/ledger/store.ts";
import { ModelCommand } from "../model-command.ts";
import { counter, draft, HandClock, type StoreLab, type TestStore, UNKNOWN } from "./store-lab.ts";

/** The plainest thing that could be right: lists of everything, looked through from the start. */
class Model {
  readonly calls: { readonly client: string; readonly steady: number; readonly day: string }[] = [];
  readonly running: Running[] = [];
  readonly spent: { readonly client: string; readonly month: string; readonly micros: number }[] = [];
  /** Costs of the rows that the ledger must have, by outcome. */
  readonly rows: { readonly ok: number[]; readonly unknown: number[] } = { ok: [], unknown: [] };
  caps = { minute: 3, day: 8, atOnce: 3, budget: 100 };
  readonly #countsLater: boolean;

  constructor(countsLater: boolean) {
    this.#countsLater = countsLater;
  }

  /** Whether what was counted then counts now. */
  #counts(then: string, now: string): boolean {
    return this.#countsLater ? then >= now : then === now;
  }

  allows(client: string, reserve: number, clock: HandClock): boolean {
    const mine = this.calls.filter((call) => call.client === client);
    const inWindow = mine.filter(({ steady }) => steady > clock.steady - 60_000).length;
    const today = mine.filter(({ day }) => this.#counts(day, dayOf(clock))).length;
    const held = this.running.filter((each) => each.client === client);
    const sum = (items: readonly { readonly micros: number; readonly month: string }[]): number =>
      items.filter(({ month }) => this.#counts(month, monthOf(clock))).reduce((total, { micros }) => total + micros, 0);
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
  readonly lab: StoreLab;
  readonly place: string;
  readonly clock: HandClock;
  readonly stores: TestStore[];
}

class Command extends ModelCommand<Model, Real> {}

const client = fc.constantFrom("ada", "bob");
const server = fc.constantFrom(0, 1);

const call = fc.tuple(client, server, fc.constantFrom(0, 0, 10, 40)).map(
  ([who, any, reserve]) =>
    new Command(`call(${who}, server ${any}, ${reserve})`, async (model, { stores, clock }) => {
      const at = any % stores.length;
      const isAllowed = model.allows(who, reserve, clock);
      const { minute, day, atOnce, budget } = model.caps;
      const counters = [counter({ key: who, minute, day, atOnce, budget })];
      const [admission] = await stores[at]!.admit([{ counters, reserveMicros: reserve, draft: UNKNOWN }]);
      if (admission === undefined) throw new Error("no answer");
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
      const settlement = { call: ended.lease.call, costMicros: cost, draft: draft({ costMicros: cost }) };
      await stores[ended.server]!.settle([settlement]);
      model.spent.push({ client: ended.client, month: ended.month, micros: cost });
      model.rows.ok.push(cost);
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

const kill = fc.tuple(server, fc.boolean()).map(
  ([any, isNeighbour]) =>
    new Command(`kill(${any}, found by ${isNeighbour ? "a neighbour" : "the next"})`, async (model, real) => {
      const { lab, stores, clock, place } = real;
      const at = any % stores.length;
      await lab.kill(stores[at]!);
      if (isNeighbour && stores.length > 1) await stores[(at + 1) % stores.length]!.recover();
      const next = await lab.open({ place, clock });
      stores[at] = next;
      await next.recover();
      for (const { server: of, client: who, month, micros } of model.running) {
        if (of !== at) continue;
        model.spent.push({ client: who, month, micros });
        model.rows.unknown.push(micros);
      }
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

interface Lives {
  readonly numRuns: number;
  readonly servers?: number;
  /** The clock is the server's own and may be set back: what later days and months count is counted too. */
  readonly countsLater?: boolean;
}

/** Holds a store against the model in so many random lives; says how many calls passed in the longest. */
export async function callsInLivesHeldAgainstModel(
  lab: StoreLab,
  { numRuns, servers = 2, countsLater = false }: Lives,
): Promise<number> {
  let longest = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.commands([call, call, call, settle, settle, pass, setClock, kill, reload], {
        maxCommands: 60,
        size: "max",
      }),
      async (commands) => {
        const place = lab.newPlace();
        const clock = new HandClock("2026-11-15T23:58:00Z");
        const stores = await Promise.all(Array.from({ length: servers }, () => lab.open({ place, clock })));
        try {
          const model = new Model(countsLater);
          await fc.asyncModelRun(() => ({ model, real: { lab, place, clock, stores } }), commands);
          longest = Math.max(longest, model.calls.length);
          await assertRecorded(model, await lab.reader(place));
        } finally {
          await Promise.all(stores.map((store) => store.close()));
        }
      },
    ),
    { numRuns },
  );
  return longest;
}

/** Every call that ended has one row with its cost, and the chain is whole. */
async function assertRecorded({ rows }: Model, reader: LedgerReader): Promise<void> {
  for (const outcome of ["ok", "unknown"] as const) {
    const found = (await reader.list({ outcome }, { limit: 1000 })).map((row) => row.cost_micros);
    const [recorded, expected] = [found, rows[outcome]].map((costs) => costs.toSorted((a, b) => a - b).join());
    if (recorded !== expected) throw new Error(`rows with the outcome ${outcome}: ${recorded} in place of ${expected}`);
  }
  const { isIntact } = await reader.verify({});
  await reader.close();
  if (!isIntact) throw new Error("the chain is broken");
}

function dayOf({ wall }: HandClock): string {
  return new Date(wall).toISOString().slice(0, 10);
}

function monthOf(clock: HandClock): string {
  return dayOf(clock).slice(0, 7);
}
