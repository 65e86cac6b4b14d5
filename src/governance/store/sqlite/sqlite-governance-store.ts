import { OwlError } from "../../../errors/owl-error.ts";
import type { LedgerKeys } from "../../ledger/keys.ts";
import type { SqliteConnection } from "../../ledger/sqlite/connection.ts";
import { SqliteStore, type SqliteStoreOptions } from "../../ledger/sqlite/sqlite-store.ts";
import type { CallId, Settled, Settlement } from "../../ledger/store.ts";
import { identifySelf, isSharerAlive, type SharerIdentity } from "../../../platform/process-identity.ts";
import { Calendar, type Clock, systemClock } from "../calendar.ts";
import type { Counter } from "../../policy/terms.ts";
import { admitBatch, CALLS_PER_PROCESS, keysOf, sealStart, usedBy } from "../admit-batch.ts";
import {
  type Admission,
  type AdmitRequest,
  type GovernanceStore,
  type Used,
  settlementOfDead,
} from "../governance-store.ts";
import type { Moment } from "../key-counts.ts";
import { CallTables, type Ending } from "./call-tables.ts";

/**
 * A process in another container cannot be inspected: it is treated as dead when its beat is unchanged for this long.
 */
const SILENCE_MS = 30_000;
const BEAT_MS = 5000;

export interface SqliteGovernanceStoreOptions extends SqliteStoreOptions {
  /** Read in every transaction: a reload may change it. */
  readonly timeZone: () => string;
  readonly clock?: Clock;
  /** The file in which earlier versions counted. */
  readonly oldLimits?: string;
  /** For tests: which process is alive. */
  readonly isAlive?: (identity: SharerIdentity, id: number) => boolean | undefined;
}

/**
 * Counts, budgets, started calls and the ledger in one file that several processes share. They share state only through
 * transactions: nothing is kept in memory from one to the next.
 */
export class SqliteGovernanceStore extends SqliteStore implements GovernanceStore {
  readonly #options: SqliteGovernanceStoreOptions;
  readonly #keys: LedgerKeys;
  readonly #clock: Clock;
  readonly #tables = new WeakMap<SqliteConnection, CallTables>();
  readonly #seen = new Map<number, { readonly beat: number; readonly atMs: number }>();
  #calendar: Calendar;
  #process = 0;
  #lastCall = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  private constructor(options: SqliteGovernanceStoreOptions) {
    super(options);
    this.#options = options;
    this.#keys = options.keys;
    this.#clock = options.clock ?? systemClock();
    this.#calendar = new Calendar(options.timeZone());
  }

  static async open(options: SqliteGovernanceStoreOptions): Promise<SqliteGovernanceStore> {
    const store = new SqliteGovernanceStore(options);
    try {
      await store.#join();
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  /** The id of this process in the list of processes. */
  get processId(): number {
    return this.#process;
  }

  admit(batch: readonly AdmitRequest[]): Promise<readonly Admission[]> {
    return this.#count((tables, moment) => {
      if (!tables.isListed(this.#process)) this.#list(tables);
      const counts = tables.load(keysOf(batch.map(({ counters }) => counters)), moment);
      const nextCall = (): CallId => this.#process * CALLS_PER_PROCESS + (this.#lastCall += 1);
      const { admissions, starts } = admitBatch(batch, { counts, moment, keys: this.#keys, nextCall });
      tables.add(counts.values(), starts, moment);
      return admissions;
    });
  }

  usage(counters: readonly Counter[]): Promise<readonly Used[]> {
    return this.#count((tables, moment) =>
      usedBy(counters, { counts: tables.load(keysOf([counters]), moment), moment }),
    );
  }

  async settle(batch: readonly Settlement[]): Promise<Settled> {
    if (this.#isClosed) throw closed();
    let ending: Ending = { counts: [], spendings: [] };
    const reseal = sealStart.bind(undefined, this.#keys);
    const appended = await this.appendWith((db) => {
      const { month } = this.#moment().day;
      ending = this.#tablesOf(db).end(batch, { month, reseal });
      return batch.flatMap(({ draft }, index) => (draft !== undefined && ending.counts[index] === true ? [draft] : []));
    });
    const { counts, spendings } = ending;
    let next = 0;
    const seqs = batch.map(({ draft }, index) =>
      draft !== undefined && counts[index] === true ? (appended.seqs[next++] ?? 0) : 0,
    );
    return { ...appended, seqs, spendings };
  }

  async recover(): Promise<number> {
    const dead = await this.#count((tables) => tables.processes().filter((process) => this.#isDead(process)));
    let ended = 0;
    for (const { id } of dead) {
      for (;;) {
        const starts = await this.#count((tables) => tables.startsOf(id));
        if (starts.length === 0) break;
        // Of several processes that find the same calls, the first one settles them.
        await this.settle(starts.map((start) => settlementOfDead(this.#keys, start)));
        ended += starts.length;
      }
      await this.#count((tables) => tables.unlist(id));
      this.#seen.delete(id);
    }
    return ended;
  }

  override async close(): Promise<void> {
    if (this.#isClosed) return;
    // A process that still has calls stays on the list: the next process settles them.
    const left = this.#process === 0 ? undefined : this.#count((tables) => tables.unlist(this.#process));
    this.#stop();
    try {
      await left;
    } catch {
      // The next process detects that this one has ended.
    } finally {
      await super.close();
    }
  }

  /** Leaves everything as a killed process would; for tests. */
  async abandon(): Promise<void> {
    this.#stop();
    await super.close();
  }

  #stop(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  #join(): Promise<void> {
    const old = this.#options.oldLimits;
    return this.#count((tables, moment) => {
      if (old !== undefined) tables.takeOver(old);
      tables.adoptBoot(this.#clock.bootId, moment);
      this.#list(tables);
      this.#timer = setInterval(() => void this.#beat(), BEAT_MS).unref();
    });
  }

  /**
   * Also registers a process that was silent for long: another process has settled its calls, and it gets a new number.
   */
  #list(tables: CallTables): void {
    this.#process = tables.list(identifySelf());
    this.#lastCall = 0;
  }

  async #beat(): Promise<void> {
    try {
      await this.#count((tables) => tables.beat(this.#process));
    } catch {
      // The next beat tries again, and calls report by themselves that the store is unavailable.
    }
  }

  #isDead({ id, beat, ...identity }: SharerIdentity & { readonly id: number; readonly beat: number }): boolean {
    if (id === this.#process) return false;
    const isAlive = (this.#options.isAlive ?? isSharerAlive)(identity, id);
    if (isAlive !== undefined) return !isAlive;
    const nowMs = this.#clock.steadyMs();
    const seen = this.#seen.get(id);
    if (seen === undefined || seen.beat !== beat) {
      this.#seen.set(id, { beat, atMs: nowMs });
      return false;
    }
    return nowMs - seen.atMs > SILENCE_MS;
  }

  #count<T>(act: (tables: CallTables, moment: Moment) => T): Promise<T> {
    if (this.#isClosed) return Promise.reject(closed());
    return this.transact((db) => act(this.#tablesOf(db), this.#moment()));
  }

  #tablesOf(db: SqliteConnection): CallTables {
    let tables = this.#tables.get(db);
    if (tables === undefined) this.#tables.set(db, (tables = new CallTables(db)));
    return tables;
  }

  #moment(): Moment {
    const timeZone = this.#options.timeZone();
    if (timeZone !== this.#calendar.timeZone) this.#calendar = new Calendar(timeZone);
    const wallMs = this.#clock.wallMs();
    return { wallMs, steadyMs: Math.floor(this.#clock.steadyMs()), day: this.#calendar.at(wallMs) };
  }
}

function closed(): OwlError {
  return new OwlError("store_unavailable", "the governance store is closed", {
    hint: "The server is stopping.",
    retryable: false,
  });
}
