import type { Counter } from "../policy/terms.ts";
import { addCall, forgetExpired, type Held, type KeyState, type Moment, objectionOf, usedOf } from "./key-state.ts";
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
  readonly #undo: (() => void)[] = [];
  readonly #unsavedSpent: { readonly key: string; readonly month: string; micros: number }[] = [];
  #moment: Moment;

  constructor(tables: LimitTables, process: number, moment: Moment) {
    this.#tables = tables;
    this.#process = process;
    this.#moment = moment;
  }

  open(moment: Moment): void {
    this.#moment = moment;
    if (this.#tables.hasForeignChanges() || this.#states.size > MAX_KEPT_KEYS) this.#states.clear();
  }

  /** In memory only: no key may have to be read first. */
  resume(moment: Moment): void {
    this.#moment = moment;
  }

  knows(counters: readonly Counter[], { day }: Moment): boolean {
    return counters.every(({ key }) => {
      const state = this.#states.get(key);
      return state !== undefined && state.day === day.day && state.month === day.month;
    });
  }

  get hasUncounted(): boolean {
    return this.#dirty.size > 0 || this.#unsavedSpent.length > 0;
  }

  /** What was done in memory stands, whether or not it can be saved at once. */
  stand(): void {
    this.#undo.length = 0;
  }

  /** What was read before something else was changed in the file is read again. */
  forget(): void {
    this.#settleDirty();
    for (const key of this.#touched) this.#heldOf(key).isStored = true;
    this.#states.clear();
  }

  admit({ counters, reserveMicros }: AdmitRequest): Admission {
    const refusal = this.#objection(counters, reserveMicros);
    if (refusal !== undefined) return { ok: false, refusal, used: this.used(counters) };
    const { month } = this.#moment.day;
    for (const counter of counters) {
      const state = this.#stateOf(counter.key);
      addCall(state, this.#moment.steadyMs);
      this.#dirty.add(state);
      this.#hold(counter, month, { running: 1, micros: reserveMicros });
    }
    return { ok: true, lease: { counters, month, reserveMicros }, used: this.used(counters) };
  }

  settle({ counters, month, reserveMicros }: Lease, costMicros: number): readonly Crossing[] {
    return counters.flatMap((counter) => {
      this.#hold(counter, month, { running: -1, micros: -reserveMicros });
      return counter.budget === undefined || costMicros === 0 ? [] : this.#spend(counter, month, costMicros);
    });
  }

  used(counters: readonly Counter[]): readonly Used[] {
    return counters.flatMap((counter) => {
      const { key } = counter;
      return usedOf({ state: this.#stateOf(key), held: this.#heldOf(key), counter, moment: this.#moment });
    });
  }

  save(): void {
    this.saveCounted();
    for (const key of this.#touched) this.#tables.saveHeld(this.#process, key, this.#heldOf(key));
  }

  /** What must outlive this process. What it holds ends with it, and is of interest only to others. */
  saveCounted(): void {
    for (const state of this.#dirty) this.#tables.saveCalls(state, this.#moment);
    for (const { key, month, micros } of this.#unsavedSpent) this.#tables.addSpent(key, month, micros);
  }

  /** The transaction stands: nothing of it can be taken back any more, and nothing has to be saved again. */
  keep(): void {
    this.keepCounted();
    for (const key of this.#touched) this.#keepHeld(key);
    this.#touched.clear();
  }

  /** The same after `saveCounted`. */
  keepCounted(): void {
    this.#settleDirty();
    for (const key of this.#touched) this.#forgetUnheld(key);
    this.#undo.length = 0;
  }

  /** Nothing of the transaction counts: what was kept of it in memory goes too. */
  undo(): void {
    while (this.#undo.length > 0) this.#undo.pop()?.();
    this.#dirty.clear();
    this.#unsavedSpent.length = 0;
    this.#states.clear();
  }

  #settleDirty(): void {
    for (const state of this.#dirty) state.unsaved = { chunks: [], days: new Map() };
    this.#dirty.clear();
    this.#unsavedSpent.length = 0;
  }

  #keepHeld(key: string): void {
    const held = this.#heldOf(key);
    for (const [month, micros] of held.reservedMicros) if (micros === 0) held.reservedMicros.delete(month);
    if (isNothing(held)) this.#held.delete(key);
    else held.isStored = true;
  }

  #forgetUnheld(key: string): void {
    const held = this.#heldOf(key);
    if (held.isStored || !isNothing(held)) return;
    this.#held.delete(key);
    this.#touched.delete(key);
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
    const unsaved = this.#unsavedSpent.find((spent) => spent.key === key && spent.month === month);
    // What many calls spent is one row, and is written once.
    if (unsaved === undefined) this.#unsavedSpent.push({ key, month, micros });
    else unsaved.micros += micros;
    if (state.month !== month) return [];
    const before = state.spentMicros;
    state.spentMicros += micros;
    return crossingsOf(counter, before, state.spentMicros);
  }

  #hold(counter: Counter, month: string, change: { readonly running: number; readonly micros: number }): void {
    const { key, concurrency, budget } = counter;
    const held = this.#heldOf(key);
    const step = (sign: 1 | -1): void => {
      if (concurrency !== undefined) held.running = Math.max(0, held.running + sign * change.running);
      if (budget === undefined || change.micros === 0) return;
      held.reservedMicros.set(month, Math.max(0, (held.reservedMicros.get(month) ?? 0) + sign * change.micros));
    };
    if (concurrency === undefined && (budget === undefined || change.micros === 0)) return;
    step(1);
    this.#held.set(key, held);
    this.#touched.add(key);
    this.#undo.push(() => {
      step(-1);
      this.#held.set(key, held);
    });
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
    if (state.day !== day) this.#turnDay(state, day);
    if (state.month !== month) {
      Object.assign(state, this.#tables.loadMonth(key, month));
      for (const spent of this.#unsavedSpent)
        if (spent.key === key && spent.month === month) state.spentMicros += spent.micros;
      state.othersReservedMicros = this.#tables.others(key, month, this.#process)[1];
    }
    return state;
  }

  #turnDay(state: KeyState, day: string): void {
    Object.assign(state, this.#tables.loadDay(state.key, day));
    state.dayCount += state.unsaved.days.get(day) ?? 0;
  }
}

function isNothing({ running, reservedMicros }: Held): boolean {
  if (running > 0) return false;
  for (const micros of reservedMicros.values()) if (micros > 0) return false;
  return true;
}
