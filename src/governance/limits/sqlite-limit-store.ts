import { realpathSync } from "node:fs";
import { withFields } from "../../collections/with-fields.ts";
import type { OwlError } from "../../errors/owl-error.ts";
import type { CallsInFlight } from "../../telemetry/calls-in-flight.ts";
import type { Counter } from "../policy/terms.ts";
import { Calendar } from "./calendar.ts";
import { type Clock, systemClock } from "./clock.ts";
import { CountJournal } from "./count-journal.ts";
import type { Moment } from "./key-state.ts";
import { LeftJournals } from "./left-journals.ts";
import { LimitBook } from "./limit-book.ts";
import {
  type Admission,
  type AdmitRequest,
  countersOf,
  type Crossing,
  type Lease,
  type LimitStore,
  type Used,
} from "./limit-store.ts";
import { LimitTables } from "./limit-tables.ts";
import { type LimitsDatabase, openLimitsDatabase } from "./limits-database.ts";
import { ProcessTable, type ProcessTableOptions } from "./process-table.ts";
import { SoleCounting, unavailable } from "./sole-counting.ts";
import { FileClaim } from "./sqlite-claim.ts";

export interface SqliteLimitStoreOptions {
  readonly path: string;
  /** Asked with every transaction: a reload may change it. */
  readonly timeZone: () => string;
  readonly clock?: Clock;
  readonly isAlive?: ProcessTableOptions["isAlive"];
  /** Whose counts are about to come. */
  readonly inFlight?: CallsInFlight;
}

const REAP_MS = 200;
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

const HANDOVER_POLL_MS = 2;

/**
 * Counts in a file that several processes share. Everything asked for in one turn of the event loop is one transaction;
 * what is read from the file is kept until another process has written to it. A process that has the file for itself
 * claims it and counts in memory; the file follows within milliseconds, and always before an answer leaves. It gives the
 * claim back as soon as somebody else comes, or nobody calls.
 */
export class SqliteLimitStore implements LimitStore {
  readonly #options: SqliteLimitStoreOptions;
  readonly #clock: Clock;
  readonly #db: LimitsDatabase;
  readonly #tables: LimitTables;
  readonly #processes: ProcessTable;
  readonly #book: LimitBook;
  readonly #claim: FileClaim;
  readonly #sole: SoleCounting;
  readonly #left: LeftJournals;
  /** What was spent and could not be booked: it goes into the next transaction that works. */
  #unbooked: { readonly lease: Lease; readonly costMicros: number }[] = [];
  #queue: Operation[] = [];
  #soon: NodeJS.Immediate | undefined;
  #later: NodeJS.Timeout | undefined;
  #calendar: Calendar;
  #reapedAtMs = Number.NEGATIVE_INFINITY;
  #isLittered = true;
  #isClosed = false;

  constructor(options: SqliteLimitStoreOptions) {
    const { path, timeZone, clock = systemClock(), isAlive } = options;
    this.#options = options;
    this.#clock = clock;
    this.#calendar = new Calendar(timeZone());
    this.#db = openLimitsDatabase(path);
    const tables = new LimitTables(this.#db);
    const steadyMs = (): number => clock.steadyMs();
    const journals = { path: realpathSync(path), tables, steadyMs };
    this.#tables = tables;
    this.#left = new LeftJournals(journals);
    this.#processes = tables.transact(() => {
      // Their moments are of the same boot as those in the tables.
      this.#left.foldAll();
      tables.adoptBoot(clock);
      tables.prune(this.#moment());
      const processes = new ProcessTable(this.#db, {
        steadyMs,
        onDead: (id) => this.#takeOver(id),
        ...(isAlive !== undefined && { isAlive }),
      });
      processes.reap();
      return processes;
    });
    this.#sweep();
    this.#claim = new FileClaim({ tables, processes: this.#processes, journals: this.#left });
    this.#book = new LimitBook(tables, this.#processes.id, this.#moment());
    this.#sole = new SoleCounting({
      tables,
      book: this.#book,
      claim: this.#claim,
      journal: new CountJournal({ ...journals, process: this.#processes.id }),
      moment: () => this.#moment(),
      enlist: () => this.#enlist(),
      gathered: () => options.inFlight?.settled() ?? Promise.resolve(),
    });
  }

  /** As the table of processes knows this one. */
  get processId(): number {
    return this.#processes.id;
  }

  admit(request: AdmitRequest): Admission | Promise<Admission> {
    if (this.#sole.open(request.counters)) {
      const admission = this.#book.admit(request);
      if (!admission.ok) return admission;
      return { ok: true, lease: withFields(admission.lease, { counted: this.#sole.counted() }), used: admission.used };
    }
    return this.#enqueue(() => {
      const admission = this.#book.admit(request);
      return admission.ok || !this.#mayHaveDied(admission.refusal.name) ? admission : this.#book.admit(request);
    });
  }

  settle(lease: Lease, costMicros: number): Promise<readonly Crossing[]> {
    if (this.#sole.open(lease.counters)) {
      const crossings = this.#book.settle(lease, costMicros);
      const booked = this.#sole.booked();
      return crossings.length === 0 ? booked : booked.then(() => crossings);
    }
    return this.#enqueue(() => this.#book.settle(lease, costMicros), {
      isUrgent: costMicros > 0,
      onFailure: () => void (this.#unbooked.length < MAX_UNBOOKED && this.#unbooked.push({ lease, costMicros })),
    });
  }

  async charge(budgets: readonly string[], costMicros: number): Promise<void> {
    await this.settle({ counters: countersOf(budgets), month: this.#moment().day.month, reserveMicros: 0 }, costMicros);
  }

  usage(counters: readonly Counter[]): Promise<readonly Used[]> {
    return this.#enqueue(() => this.#book.used(counters));
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#flush();
    const isSaved = this.#sole.end();
    this.#stop();
    // A neighbour who counts in memory had not made room for them yet.
    for (const { failed } of this.#queue.splice(0)) failed(unavailable(new Error("it is closed")));
    try {
      // One that could not hand over stays on file, and so does its journal: the next one takes both in.
      if (isSaved) this.#tables.transact(() => this.#leave());
    } finally {
      this.#db.close();
    }
  }

  /** Leaves everything as a killed process would; for tests. */
  abandon(): void {
    this.#stop();
    this.#db.close();
  }

  #stop(): void {
    this.#isClosed = true;
    this.#sole.stop();
    this.#processes.stop();
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
    this.#queue = [];
    clearTimeout(this.#later);
    clearImmediate(this.#soon);
    this.#later = undefined;
    this.#soon = undefined;
    if (operations.length === 0 || this.#isClosed) return;
    try {
      // What is in memory or in the journal must be in the tables before anything of the tables is believed again.
      if (!this.#sole.save()) throw new Error("counts could not be written");
      if (!this.#transact(operations)) {
        this.#queue = [...operations, ...this.#queue];
        this.#later ??= setTimeout(() => this.#flush(), HANDOVER_POLL_MS);
        return;
      }
    } catch (error) {
      for (const { failed } of operations) failed(unavailable(error));
      return;
    }
    for (const { done } of operations) done();
  }

  /** Whether it could be done now: not while a neighbour counts in memory. */
  #transact(operations: readonly Operation[]): boolean {
    const late = this.#unbooked;
    try {
      const isHeld = this.#tables.transact(() => {
        this.#enlist();
        return this.#claim.mustWait() ? undefined : this.#run(operations);
      });
      if (isHeld === undefined) return false;
      this.#book.keep();
      this.#sole.goOn(isHeld);
      this.#sweep();
      return true;
    } catch (error) {
      this.#unbooked = late;
      this.#book.undo();
      throw error;
    }
  }

  /** Whether this process may count in memory from now on. */
  #run(operations: readonly Operation[]): boolean {
    this.#book.open(this.#moment());
    const late = this.#unbooked;
    this.#unbooked = [];
    for (const { lease, costMicros } of late) this.#book.settle(lease, costMicros);
    for (const { run } of operations) run();
    this.#book.save();
    return this.#claim.renew();
  }

  #enlist(): void {
    if (this.#processes.enlist()) this.#book.tellHeldAgain();
  }

  #leave(): void {
    this.#processes.leave();
    this.#tables.dropLastLine(this.#processes.id);
  }

  #takeOver(id: number): void {
    this.#left.fold(id);
    this.#isLittered = true;
  }

  #sweep(): void {
    if (!this.#isLittered) return;
    try {
      this.#tables.transact(() => this.#left.sweep());
      this.#isLittered = false;
    } catch {
      // Nobody reads what is left of the dead, and the next transaction tries again.
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
}
