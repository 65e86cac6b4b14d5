import { OwlError } from "../../errors/owl-error.ts";
import type { Counter } from "../policy/terms.ts";
import { Calendar } from "./calendar.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { Moment } from "./key-state.ts";
import { LimitBook } from "./limit-book.ts";
import type { Admission, AdmitRequest, Crossing, Lease, LimitStore, Used } from "./limit-store.ts";
import { LimitTables } from "./limit-tables.ts";
import { type LimitsDatabase, openLimitsDatabase } from "./limits-database.ts";
import { ProcessTable, type ProcessTableOptions } from "./process-table.ts";

export interface SqliteLimitStoreOptions {
  readonly path: string;
  /** Asked with every transaction: a reload may change it. */
  readonly timeZone: () => string;
  readonly clock?: Clock;
  readonly isAlive?: ProcessTableOptions["isAlive"];
}

const REAP_MS = 200;
const KEPT_DAYS = 400;
const DAY_MS = 86_400_000;
const MAX_UNBOOKED = 100_000;

/** Places that are given back: others see it a moment later, this process at once. */
const LATER_MS = 5;

interface EnqueueOptions {
  readonly isUrgent?: boolean;
  readonly onFailure?: () => void;
}

interface Operation {
  readonly run: () => void;
  readonly done: () => void;
  readonly failed: (error: OwlError) => void;
}

/**
 * Counts in a file that several processes share. Everything asked for in one turn of the event loop is one transaction;
 * what is read from the file is kept until another process has written to it.
 */
export class SqliteLimitStore implements LimitStore {
  readonly #options: SqliteLimitStoreOptions;
  readonly #clock: Clock;
  readonly #db: LimitsDatabase;
  readonly #tables: LimitTables;
  readonly #processes: ProcessTable;
  readonly #book: LimitBook;
  /** What was spent and could not be booked: it goes into the next transaction that works. */
  #unbooked: { readonly lease: Lease; readonly costMicros: number }[] = [];
  #queue: Operation[] = [];
  #soon: NodeJS.Immediate | undefined;
  #later: NodeJS.Timeout | undefined;
  #calendar: Calendar;
  #reapedAtMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: SqliteLimitStoreOptions) {
    const { path, timeZone, clock = systemClock(), isAlive } = options;
    this.#options = options;
    this.#clock = clock;
    this.#calendar = new Calendar(timeZone());
    this.#db = openLimitsDatabase(path);
    this.#tables = new LimitTables(this.#db);
    this.#tables.begin();
    this.#tables.adoptBoot(clock);
    this.#prune();
    this.#processes = new ProcessTable(this.#db, {
      steadyMs: () => clock.steadyMs(),
      ...(isAlive !== undefined && { isAlive }),
    });
    this.#processes.reap();
    this.#tables.commit();
    this.#book = new LimitBook(this.#tables, this.#processes.id, this.#moment());
  }

  /** As the table of processes knows this one. */
  get processId(): number {
    return this.#processes.id;
  }

  admit(request: AdmitRequest): Promise<Admission> {
    return this.#enqueue(() => {
      const admission = this.#book.admit(request);
      return admission.ok || !this.#mayHaveDied(admission.refusal.name) ? admission : this.#book.admit(request);
    });
  }

  settle(lease: Lease, costMicros: number): Promise<readonly Crossing[]> {
    return this.#enqueue(() => this.#book.settle(lease, costMicros), {
      isUrgent: costMicros > 0,
      onFailure: () => void (this.#unbooked.length < MAX_UNBOOKED && this.#unbooked.push({ lease, costMicros })),
    });
  }

  usage(counters: readonly Counter[]): Promise<readonly Used[]> {
    return this.#enqueue(() => this.#book.used(counters));
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#flush();
    this.#isClosed = true;
    try {
      this.#processes.close();
    } finally {
      this.#db.close();
    }
  }

  /** Leaves everything as a killed process would; for tests. */
  abandon(): void {
    this.#isClosed = true;
    this.#processes.stop();
    this.#db.close();
  }

  /** What is not urgent goes with the next transaction, or makes one of its own in a moment. */
  #enqueue<T>(run: () => T, { isUrgent = true, onFailure = () => undefined }: EnqueueOptions = {}): Promise<T> {
    if (this.#isClosed) return Promise.reject(unavailable(new Error("it is closed")));
    return new Promise<T>((resolve, reject) => {
      let result: { readonly value: T } | undefined;
      this.#queue.push({
        run: () => (result = { value: run() }),
        done: () => (result === undefined ? undefined : resolve(result.value)),
        failed: (error) => {
          onFailure();
          reject(error);
        },
      });
      if (!isUrgent) this.#later ??= setTimeout(() => this.#flush(), LATER_MS);
      else this.#soon ??= setImmediate(() => this.#flush());
    });
  }

  #flush(): void {
    const operations = this.#queue;
    const late = this.#unbooked;
    this.#queue = [];
    clearTimeout(this.#later);
    clearImmediate(this.#soon);
    this.#later = undefined;
    this.#soon = undefined;
    if (operations.length === 0 || this.#isClosed) return;
    try {
      this.#tables.begin();
      this.#book.open(this.#moment());
      this.#unbooked = [];
      for (const { lease, costMicros } of late) this.#book.settle(lease, costMicros);
      for (const { run } of operations) run();
      this.#book.save();
      this.#tables.commit();
    } catch (error) {
      this.#unbooked = late;
      this.#rollBack();
      for (const { failed } of operations) failed(unavailable(error));
      return;
    }
    this.#book.keep();
    for (const { done } of operations) done();
  }

  #rollBack(): void {
    this.#book.undo();
    try {
      this.#tables.rollback();
    } catch {
      // A connection that cannot roll back has nothing to roll back any more.
    }
  }

  /** Before somebody is refused for what others hold, the others are looked at. */
  #mayHaveDied(name: Used["name"]): boolean {
    const now = this.#clock.steadyMs();
    if ((name !== "concurrency" && name !== "monthlyBudget") || now - this.#reapedAtMs < REAP_MS) return false;
    this.#reapedAtMs = now;
    if (!this.#processes.reap()) return false;
    // What this transaction has counted so far must be in the file before it is read again.
    this.#book.save();
    this.#book.forget();
    return true;
  }

  #moment(): Moment {
    const timeZone = this.#options.timeZone();
    if (timeZone !== this.#calendar.timeZone) this.#calendar = new Calendar(timeZone);
    const wallMs = this.#clock.wallMs();
    return { wallMs, steadyMs: Math.floor(this.#clock.steadyMs()), day: this.#calendar.at(wallMs) };
  }

  /** Far more than any limit looks back, so that a clock that was set wrong for a while forgets nothing. */
  #prune(): void {
    const { steadyMs, wallMs } = this.#moment();
    const day = new Date(wallMs - KEPT_DAYS * DAY_MS).toISOString().slice(0, 10);
    this.#db.prepare("DELETE FROM calls WHERE at <= ?").run(steadyMs - 60_000);
    this.#db.prepare("DELETE FROM days WHERE day < ?").run(day);
    this.#db.prepare("DELETE FROM spent WHERE month < ?").run(day.slice(0, 7));
  }
}

function unavailable(cause: unknown): OwlError {
  return new OwlError("store_unavailable", "calls cannot be counted at the moment, so none is let through", { cause });
}
