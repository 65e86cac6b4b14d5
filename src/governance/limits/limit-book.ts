import type { Counter } from "../policy/terms.ts";
import type { CallCount, Counts, SpentCount } from "./counts.ts";
import { addCall, addUsed, forgetExpired, type Held, type KeyState, type Moment, objectionOf } from "./key-state.ts";
import type { Admission, AdmitRequest, Crossing, Lease, LimitRefusal, Used } from "./limit-store.ts";
import type { LimitTables } from "./limit-tables.ts";
import { crossingsOf } from "./thresholds.ts";

const MAX_KEPT_KEYS = 10_000;

/**
 * What is known of all keys. Methods run inside a transaction, between `open` and `save` or `undo`; or, while this
 * process alone counts, in memory, and `save` follows in a transaction of its own.
 */
export class LimitBook {
  readonly #tables: LimitTables;
  readonly #process: number;
  readonly #states = new Map<string, KeyState>();
  readonly #held = new Map<string, Held>();
  readonly #touched = new Set<string>();
  readonly #dirty = new Set<KeyState>();
  /** What a transaction that fails gives back; nothing is given back of what was done in memory. */
  #undo: Hold[] | undefined;
  #spent: SpentCount[] = [];
  #moment: Moment;

  constructor(tables: LimitTables, process: number, moment: Moment) {
    this.#tables = tables;
    this.#process = process;
    this.#moment = moment;
  }

  open(moment: Moment): void {
    this.#moment = moment;
    this.#undo = [];
    if (this.#tables.hasForeignChanges() || this.#states.size > MAX_KEPT_KEYS) this.#states.clear();
  }

  /** In memory only: no key may have to be read first. */
  resume(moment: Moment): void {
    this.#moment = moment;
  }

  knows(counters: readonly Counter[], { day }: Moment): boolean {
    for (const { key } of counters) {
      const state = this.#states.get(key);
      if (state === undefined || state.day !== day.day || state.month !== day.month) return false;
    }
    return true;
  }

  get hasUncounted(): boolean {
    return this.#dirty.size > 0 || this.#spent.length > 0;
  }

  /** What must outlive this process. What it holds ends with it, and is of interest only to others. */
  uncounted(): Counts {
    const calls: CallCount[] = [];
    for (const state of this.#dirty) calls.push(...state.uncounted);
    return { calls, spent: this.#spent };
  }

  /** All of it is on file. */
  counted(): void {
    for (const state of this.#dirty) state.uncounted = [];
    this.#dirty.clear();
    this.#spent = [];
  }

  /** What was read before something else was changed in the file is read again. */
  forget(): void {
    this.counted();
    for (const key of this.#touched) this.#heldOf(key).isStored = true;
    this.#states.clear();
  }

  /** What the others have forgotten is told again with the next `save`. */
  tellHeldAgain(): void {
    for (const key of this.#held.keys()) this.#touched.add(key);
  }

  admit({ counters, reserveMicros }: AdmitRequest): Admission {
    const refusal = this.#objection(counters, reserveMicros);
    if (refusal !== undefined) return { ok: false, refusal, used: this.used(counters) };
    const { month } = this.#moment.day;
    const step = { month, running: 1, micros: reserveMicros };
    for (const counter of counters) {
      const state = this.#stateOf(counter.key);
      addCall(state, this.#moment.steadyMs);
      this.#dirty.add(state);
      this.#hold(counter, step);
    }
    return { ok: true, lease: { counters, month, reserveMicros }, used: this.used(counters) };
  }

  settle({ counters, month, reserveMicros }: Lease, costMicros: number): readonly Crossing[] {
    const crossings: Crossing[] = [];
    const step = { month, running: -1, micros: -reserveMicros };
    for (const counter of counters) {
      this.#hold(counter, step);
      if (counter.budget !== undefined && costMicros !== 0) crossings.push(...this.#spend(counter, month, costMicros));
    }
    return crossings;
  }

  used(counters: readonly Counter[]): readonly Used[] {
    const used: Used[] = [];
    for (const counter of counters) {
      const { key } = counter;
      addUsed(used, { state: this.#stateOf(key), held: this.#heldOf(key), counter, moment: this.#moment });
    }
    return used;
  }

  save(): void {
    this.#tables.add([this.uncounted()], this.#moment.steadyMs);
    for (const key of this.#touched) this.#tables.saveHeld(this.#process, key, this.#heldOf(key));
  }

  /** The transaction stands: nothing of it can be taken back any more, and nothing has to be saved again. */
  keep(): void {
    this.counted();
    for (const key of this.#touched) this.#keepHeld(key);
    this.#touched.clear();
    this.#undo = undefined;
  }

  /** Nothing of the transaction counts: what was kept of it in memory goes too. */
  undo(): void {
    for (const { held, counter, month, running, micros } of this.#undo?.toReversed() ?? []) {
      change(held, counter, { month, running: -running, micros: -micros });
      this.#held.set(counter.key, held);
    }
    this.#undo = undefined;
    this.counted();
    this.#states.clear();
  }

  #keepHeld(key: string): void {
    const held = this.#heldOf(key);
    for (const [month, micros] of held.reservedMicros) if (micros === 0) held.reservedMicros.delete(month);
    if (isNothing(held)) this.#held.delete(key);
    else held.isStored = true;
  }

  #objection(counters: readonly Counter[], reserveMicros: number): LimitRefusal | undefined {
    for (const counter of counters) {
      const { key } = counter;
      const question = { state: this.#stateOf(key), held: this.#heldOf(key), counter, moment: this.#moment };
      const found = objectionOf(question, reserveMicros);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #spend(counter: Counter, month: string, micros: number): readonly Crossing[] {
    const { key } = counter;
    const state = this.#stateOf(key);
    const spent = this.#spent.find((each) => each.key === key && each.month === month);
    // What many calls spent is one row, and is written once.
    if (spent === undefined) this.#spent.push({ key, month, micros });
    else spent.micros += micros;
    if (month < state.month) return [];
    const before = state.spentMicros;
    state.spentMicros += micros;
    return crossingsOf(counter, before, state.spentMicros);
  }

  #hold(counter: Counter, step: Step): void {
    const { key, concurrency, budget } = counter;
    if (concurrency === undefined && (budget === undefined || step.micros === 0)) return;
    const held = this.#heldOf(key);
    change(held, counter, step);
    this.#held.set(key, held);
    this.#touched.add(key);
    this.#undo?.push({ held, counter, ...step });
  }

  #heldOf(key: string): Held {
    return this.#held.get(key) ?? { running: 0, reservedMicros: new Map(), isStored: false };
  }

  #stateOf(key: string): KeyState {
    const moment = this.#moment;
    let state = this.#states.get(key);
    if (state === undefined) {
      state = this.#tables.load(key, moment, this.#process);
      this.#states.set(key, state);
    }
    forgetExpired(state, moment.steadyMs);
    const { day, month } = moment.day;
    if (state.day !== day) Object.assign(state, this.#tables.loadDay(key, day));
    if (state.month !== month) {
      Object.assign(state, this.#tables.loadMonth(key, month));
      state.othersReservedMicros = this.#tables.others(key, month, this.#process)[1];
    }
    return state;
  }
}

/** What a call begins or ends to hold. */
interface Step {
  readonly month: string;
  readonly running: number;
  readonly micros: number;
}

interface Hold extends Step {
  readonly held: Held;
  readonly counter: Counter;
}

function change(held: Held, { concurrency, budget }: Counter, { month, running, micros }: Step): void {
  if (concurrency !== undefined) held.running = Math.max(0, held.running + running);
  if (budget === undefined || micros === 0) return;
  held.reservedMicros.set(month, Math.max(0, (held.reservedMicros.get(month) ?? 0) + micros));
}

function isNothing({ running, reservedMicros }: Held): boolean {
  if (running > 0) return false;
  for (const micros of reservedMicros.values()) if (micros > 0) return false;
  return true;
}
