import { linkHash } from "../ledger/chain.ts";
import type { LedgerKeys } from "../ledger/keys.ts";
import { COLUMNS, type Draft } from "../ledger/row.ts";
import type { CallId } from "../ledger/store.ts";
import type { Counter } from "../policy/terms.ts";
import type { Admission, AdmitRequest, Used } from "./governance-store.ts";
import { addCall, addUsed, type KeyCounts, type Moment, objectionOf } from "./key-counts.ts";

/** What a call holds under one key: one of the concurrent calls, and a reservation where the key has a budget. */
export type Hold = readonly [key: string, hasBudget: 0 | 1];

/** The start of a call as the store keeps it until the call ends. */
export interface Start {
  readonly call: CallId;
  readonly holds: readonly Hold[];
  /** The day that the call counts for, and its reserved cost. */
  readonly day: string;
  readonly micros: number;
  /** JSON of the row that the call gets if its process dies; empty where it gets none. */
  readonly draft: string;
  readonly mac: string;
}

export interface AdmittedBatch {
  readonly admissions: readonly Admission[];
  readonly starts: readonly Start[];
}

export interface BatchOptions {
  readonly counts: ReadonlyMap<string, KeyCounts>;
  readonly moment: Moment;
  readonly keys: LedgerKeys;
  readonly nextCall: () => CallId;
}

/** Decides on the calls of a batch in order: each one sees what those before it have taken. Changes the counts. */
export function admitBatch(batch: readonly AdmitRequest[], options: BatchOptions): AdmittedBatch {
  const starts: Start[] = [];
  const admissions = batch.map((request): Admission => {
    const { counters, reserveMicros } = request;
    const { moment, nextCall } = options;
    const asked = { moment, reserveMicros };
    for (const counter of counters) {
      const refusal = objectionOf(countsOf(options, counter), counter, asked);
      if (refusal !== undefined) return { ok: false, refusal, used: usedBy(counters, options) };
    }
    for (const counter of counters) addCall(countsOf(options, counter), counter, asked);
    const start = startOf(request, { call: nextCall(), day: moment.day.day, keys: options.keys });
    starts.push(start);
    const lease = { call: start.call, counters, month: moment.day.month, reserveMicros };
    return { ok: true, lease, used: usedBy(counters, options) };
  });
  return { admissions, starts };
}

export function usedBy(
  counters: readonly Counter[],
  options: Pick<BatchOptions, "counts" | "moment">,
): readonly Used[] {
  const used: Used[] = [];
  for (const counter of counters)
    addUsed(used, { counts: countsOf(options, counter), counter, moment: options.moment });
  return used;
}

function countsOf({ counts }: Pick<BatchOptions, "counts">, { key }: Counter): KeyCounts {
  const found = counts.get(key);
  if (found === undefined) throw new Error(`the counts of ${key} were not read`);
  return found;
}

/** The keys of a batch, each once, with the lowest limit per minute of its counters. */
export function keysOf(counters: Iterable<readonly Counter[]>): ReadonlyMap<string, number> {
  const keys = new Map<string, number>();
  for (const list of counters)
    for (const { key, perMinute } of list)
      keys.set(key, Math.min(keys.get(key) ?? Number.MAX_SAFE_INTEGER, perMinute?.limit ?? Number.MAX_SAFE_INTEGER));
  return keys;
}

function startOf(
  { counters, reserveMicros: micros, draft }: AdmitRequest,
  { call, day, keys }: { readonly call: CallId; readonly day: string; readonly keys: LedgerKeys },
): Start {
  const holds = counters.map(({ key, budget }): Hold => [key, budget === undefined ? 0 : 1]);
  return sealStart(keys, { call, holds, day, micros, draft: draft === undefined ? "" : JSON.stringify(draft) });
}

/** The MAC covers the number of the call and what its recovery does: a start made without the chain key adds no row. */
export function sealStart(keys: LedgerKeys, start: Omit<Start, "mac">): Start {
  return { ...start, mac: macOf(keys, start) };
}

function macOf({ chainKey }: LedgerKeys, { call, holds, day, micros, draft }: Omit<Start, "mac">): string {
  return linkHash(chainKey, `start ${call}`, `${JSON.stringify(holds)}\n${day}\n${micros}\n${draft}`);
}

export function isSealed(keys: LedgerKeys, start: Start): boolean {
  return start.mac === macOf(keys, start);
}

/** The row of a call whose process died: it costs what was reserved. */
export function rowOfDead({ draft, micros }: Start): Draft | undefined {
  if (draft === "") return undefined;
  const row: unknown = JSON.parse(draft);
  if (!Array.isArray(row)) return undefined;
  // oxlint-disable-next-line typescript/consistent-type-assertions -- sealed by this server's key
  return (row as Draft).with(COST_AT, micros);
}

/** A draft has no `seq`. */
const COST_AT = COLUMNS.indexOf("cost_micros") - 1;

/** The number of a call starts with the number of its process: process × this + counter. */
export const CALLS_PER_PROCESS = 2 ** 32;

export function callsOf(process: number): [from: number, to: number] {
  return [process * CALLS_PER_PROCESS, (process + 1) * CALLS_PER_PROCESS];
}

/** Another program may have written to the store: malformed entries are left out. */
export function toHolds(list: unknown): readonly Hold[] {
  if (!Array.isArray(list)) return [];
  return list
    .filter((hold) => Array.isArray(hold))
    .map((hold: readonly unknown[]): Hold => [String(hold[0]), hold[1] === 1 ? 1 : 0]);
}
