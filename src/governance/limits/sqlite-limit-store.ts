import { OwlError } from "../../errors/owl-error.ts";
import type { CallsInFlight } from "../../telemetry/calls-in-flight.ts";
import type { Counter } from "../policy/terms.ts";
import { Calendar } from "./calendar.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { Moment } from "./key-state.ts";
import { LimitBook } from "./limit-book.ts";
import type { Admission, AdmitRequest, Crossing, Lease, LimitStore, Used } from "./limit-store.ts";
import { LimitTables } from "./limit-tables.ts";
import { type LimitsDatabase, openLimitsDatabase } from "./limits-database.ts";
import { ProcessTable, type ProcessTableOptions } from "./process-table.ts";
import { FileClaim } from "./sqlite-claim.ts";
import { WriteBehind } from "./sqlite-write-behind.ts";

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

/** A process that hangs for longer than this may count for others as if it held what it held then. */
const HELD_MS = 100;

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
  /** What was spent and could not be booked: it goes into the next transaction that works. */
  #unbooked: { readonly lease: Lease; readonly costMicros: number }[] = [];
  #queue: Operation[] = [];
  #soon: NodeJS.Immediate | undefined;
  #later: NodeJS.Timeout | undefined;
  #calendar: Calendar;
  #reapedAtMs = Number.NEGATIVE_INFINITY;
  #heldSavedAtMs = Number.NEGATIVE_INFINITY;
  /** What cannot be written is not counted on in memory either. */
  #isBehind = false;
  readonly #behind = new WriteBehind({
    write: () => this.#writeDown(),
    onIdle: (idleMs) => this.#claim.outlasts(idleMs) || this.#release(),
    gathered: () => this.#options.inFlight?.settled() ?? Promise.resolve(),
  });
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
    this.#tables.prune(this.#moment());
    this.#processes = new ProcessTable(this.#db, {
      steadyMs: () => clock.steadyMs(),
      ...(isAlive !== undefined && { isAlive }),
    });
    this.#processes.reap();
    this.#tables.commit();
    this.#claim = new FileClaim(this.#tables, this.#processes);
    this.#book = new LimitBook(this.#tables, this.#processes.id, this.#moment());
  }

  /** As the table of processes knows this one. */
  get processId(): number {
    return this.#processes.id;
  }

  admit(request: AdmitRequest): Promise<Admission> {
    if (this.#isInMemory(request.counters)) {
      const admission = this.#book.admit(request);
      this.#book.stand();
      if (!admission.ok) return Promise.resolve(admission);
      const lease = { ...admission.lease, counted: this.#behind.add() };
      return Promise.resolve({ ...admission, lease });
    }
    return this.#enqueue(() => {
      const admission = this.#book.admit(request);
      return admission.ok || !this.#mayHaveDied(admission.refusal.name) ? admission : this.#book.admit(request);
    });
  }

  settle(lease: Lease, costMicros: number): Promise<readonly Crossing[]> {
    if (this.#isInMemory(lease.counters)) {
      const crossings = this.#book.settle(lease, costMicros);
      this.#book.stand();
      const booked = this.#behind.add();
      this.#behind.hurry();
      return booked.then(() => crossings);
    }
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
    this.#behind.flush();
    this.#behind.stop();
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
    this.#behind.stop();
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
    this.#queue = [];
    clearTimeout(this.#later);
    clearImmediate(this.#soon);
    this.#later = undefined;
    this.#soon = undefined;
    if (operations.length === 0 || this.#isClosed) return;
    try {
      // What is only in memory must be in the file before anything of the file is believed again.
      if (this.#book.hasUncounted && !this.#behind.flush()) throw new Error("counts could not be written");
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
      this.#tables.begin();
      if (this.#claim.mustWait()) {
        this.#tables.commit();
        return false;
      }
      this.#book.open(this.#moment());
      this.#unbooked = [];
      for (const { lease, costMicros } of late) this.#book.settle(lease, costMicros);
      for (const { run } of operations) run();
      this.#book.save();
      const isHeld = this.#claim.renew();
      this.#tables.commit();
      this.#book.keep();
      this.#claim.isHeld = isHeld;
      if (isHeld) this.#behind.watch();
      else this.#behind.stop();
      return true;
    } catch (error) {
      this.#unbooked = late;
      this.#rollBack();
      throw error;
    }
  }

  #isInMemory(counters: readonly Counter[]): boolean {
    if (!this.#claim.isHeld || this.#isBehind || this.#isClosed) return false;
    const moment = this.#moment();
    if (!this.#book.knows(counters, moment)) return false;
    this.#book.resume(moment);
    return true;
  }

  /** Puts what was counted in memory into the file, and makes room when somebody else has come. */
  #writeDown(): void {
    if (this.#isClosed || !this.#claim.isHeld) return;
    this.#transactAlone(({ steadyMs }) => {
      const isDisturbed = this.#tables.hasForeignChanges();
      // Nobody looks at what is held as long as the claim is; only a process that hangs loses it without a word.
      const isWhole = isDisturbed || steadyMs - this.#heldSavedAtMs >= HELD_MS;
      if (isWhole) this.#book.save();
      else this.#book.saveCounted();
      const staysAlone = !isDisturbed || this.#claim.renew();
      return () => {
        if (isWhole) this.#book.keep();
        else this.#book.keepCounted();
        if (isWhole) this.#heldSavedAtMs = steadyMs;
        if (isDisturbed) this.#book.forget();
        if (!staysAlone) this.#giveUpClaim();
      };
    });
  }

  /** Nobody calls, or a neighbour has come: it need not wait. */
  #release(): void {
    if (!this.#claim.isHeld) return;
    try {
      this.#transactAlone(() => {
        this.#book.save();
        this.#tables.dropClaims();
        return () => {
          this.#book.keep();
          this.#giveUpClaim();
        };
      });
    } catch {
      // The claim stays, and the next round tries again; whoever calls meanwhile finds out.
    }
  }

  /** `write` returns what holds when the transaction stands. */
  #transactAlone(write: (moment: Moment) => () => void): void {
    try {
      const moment = this.#moment();
      this.#tables.begin();
      this.#book.resume(moment);
      const stands = write(moment);
      this.#tables.commit();
      stands();
      this.#isBehind = false;
    } catch (error) {
      this.#isBehind = true;
      this.#rollBackFile();
      throw unavailable(error);
    }
  }

  #giveUpClaim(): void {
    this.#claim.isHeld = false;
    this.#behind.stop();
  }

  #rollBackFile(): void {
    try {
      this.#tables.rollback();
    } catch {
      // A connection that cannot roll back has nothing to roll back any more.
    }
  }

  #rollBack(): void {
    this.#book.undo();
    this.#rollBackFile();
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

function unavailable(cause: unknown): OwlError {
  return new OwlError("store_unavailable", "calls cannot be counted at the moment, so none is let through", { cause });
}
