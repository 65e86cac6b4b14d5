import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { Clock } from "../../../../src/governance/store/calendar.ts";
import type { Counter } from "../../../../src/governance/policy/terms.ts";
import type { Admission, GovernanceStore, Lease } from "../../../../src/governance/store/governance-store.ts";
import { SqliteGovernanceStore } from "../../../../src/governance/store/sqlite/sqlite-governance-store.ts";
import { type LedgerEntry, draftFromEntry } from "../../../../src/governance/ledger/ledger.ts";
import { loadLedgerKeys } from "../../../../src/governance/ledger/keys.ts";
import type { Draft, LedgerRow } from "../../../../src/governance/ledger/row.ts";
import { SqliteReader } from "../../../../src/governance/ledger/sqlite/reader.ts";
import type { LedgerReader } from "../../../../src/governance/ledger/store.ts";
import { createRedactor } from "../../../../src/telemetry/redact.ts";
import { entry } from "../ledger/ledger-entry.ts";

/** A clock that stands until it is moved; both its hands can be moved apart. */
export class HandClock implements Clock {
  wall: number;
  steady = 1_000_000;
  bootId = "first";

  constructor(wall: string) {
    this.wall = Date.parse(wall);
  }

  wallMs(): number {
    return this.wall;
  }

  steadyMs(): number {
    return this.steady;
  }

  pass(ms: number): void {
    this.wall += ms;
    this.steady += ms;
  }
}

export interface Caps {
  readonly key?: string;
  readonly minute?: number;
  readonly day?: number;
  readonly atOnce?: number;
  readonly budget?: number;
}

export function counter({ key = "ada", minute, day, atOnce, budget }: Caps): Counter {
  const cap = (limit: number | undefined, rule: string) => (limit === undefined ? undefined : { limit, rule });
  return {
    key,
    perMinute: cap(minute, "minute"),
    perDay: cap(day, "day"),
    concurrency: cap(atOnce, "at-once"),
    budget: cap(budget, "budget"),
  };
}

const redactor = createRedactor([]);

export function draft(changes: Partial<LedgerEntry> = {}): Draft {
  return draftFromEntry(entry(changes), redactor);
}

/** The row that a call gets whose process dies. */
export const UNKNOWN: Draft = draft({ outcome: "unknown", costMicros: 0, result: { error: "the server ended" } });

export interface StoreOptions {
  /** Stores of one place count together. */
  readonly place?: string;
  readonly clock?: Clock;
  readonly timeZone?: string;
  /** Of SQLite: the file in which earlier versions counted. */
  readonly oldLimits?: string;
}

export interface TestStore extends GovernanceStore {
  /** Leaves everything as a killed server would. */
  abandon(): Promise<void>;
}

/** One kind of store, to be held to what all of them promise. */
export interface StoreLab {
  newPlace(): string;
  open(options?: StoreOptions): Promise<TestStore>;
  /** What is in the ledger of a place. */
  reader(place: string): Promise<LedgerReader>;
  /** Ends one as `kill -9` would, and lets the others notice. */
  kill(store: TestStore): Promise<void>;
  /** The others take it for dead from now on; it is not. */
  bury(store: TestStore): Promise<void>;
}

const folder = mkdtempSync(join(tmpdir(), "owlclaw-store-"));
let count = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

export function newPlace(): string {
  return join(folder, `${++count}`);
}

export interface SqliteLab extends StoreLab {
  open(options?: StoreOptions): Promise<SqliteGovernanceStore>;
}

export function sqliteLab(): SqliteLab {
  // Numbers of processes begin anew in every file.
  const dead = new Set<string>();
  const names = new WeakMap<TestStore, string>();
  const bury = async (store: TestStore): Promise<void> => void dead.add(names.get(store) ?? "");
  return {
    newPlace,
    bury,
    async reader(place) {
      const loadKeys = () => loadLedgerKeys({ folder: join(place, "keys"), create: false });
      return new SqliteReader({ path: join(place, "ledger.db"), loadKeys });
    },
    async open({ place = newPlace(), clock, timeZone = "UTC", oldLimits } = {}) {
      const keyFolder = join(place, "keys");
      const store = await SqliteGovernanceStore.open({
        path: join(place, "ledger.db"),
        keys: loadLedgerKeys({ folder: keyFolder, create: true }),
        keyFolder,
        checkpointEvery: 1000,
        timeZone: () => timeZone,
        ...(clock !== undefined && { clock }),
        ...(oldLimits !== undefined && { oldLimits }),
        isAlive: (_identity, id) => !dead.has(`${place} ${id}`),
      });
      names.set(store, `${place} ${store.processId}`);
      return store;
    },
    async kill(store) {
      await store.abandon();
      await bury(store);
    },
  };
}

export interface AdmitOptions {
  readonly reserve?: number;
  readonly draft?: Draft;
}

export async function admit(
  store: GovernanceStore,
  counters: Counter | Counter[],
  { reserve = 0, draft: row }: AdmitOptions = {},
): Promise<Admission> {
  const request = {
    counters: Array.isArray(counters) ? counters : [counters],
    reserveMicros: reserve,
    draft: row,
  };
  const [admission] = await store.admit([request]);
  if (admission === undefined) throw new Error("a batch of one has one answer");
  return admission;
}

export async function lease(store: GovernanceStore, counters: Counter, options: AdmitOptions = {}): Promise<Lease> {
  const admission = await admit(store, counters, options);
  if (!admission.ok) throw new Error(`refused by ${admission.refusal.rule}`);
  return admission.lease;
}

/** How many of so many calls pass, some of them in one batch. */
export async function passed(store: GovernanceStore, counters: Counter, tries: number): Promise<number> {
  const request = { counters: [counters], reserveMicros: 0 };
  const half = Math.ceil(tries / 2);
  const batches = [half, tries - half].map((size) => Array.from({ length: size }, () => request));
  const admissions = await Promise.all(batches.map((batch) => store.admit(batch)));
  return admissions.flat().filter(({ ok }) => ok).length;
}

export async function settle(store: GovernanceStore, { call }: Lease, costMicros = 0): Promise<void> {
  await store.settle([{ call, costMicros }]);
}

export function rowsOf(store: GovernanceStore, outcome: LedgerEntry["outcome"]): Promise<readonly LedgerRow[]> {
  return store.list({ outcome }, { limit: 1000 });
}
