import { setTimeout as sleep } from "node:timers/promises";
import type { Cut } from "../checkpoint.ts";
import type { LedgerKeys } from "../keys.ts";
import type { LedgerHead } from "../ledger.ts";
import type { DayShift, LedgerFilter, LedgerStats, Page, TimelineCount, TimelineSpan } from "../query.ts";
import type { Draft, LedgerRow } from "../row.ts";
import type { Appended, LedgerStore } from "../store.ts";
import type { VerifyOptions, VerifyReport } from "../verify.ts";
import { BUSY_TIMEOUT_MS, type SqliteConnection, isLocked, storeError } from "./connection.ts";
import { SqliteThread, type ThreadData } from "./thread.ts";
import { WriteAheadLog } from "./write-ahead-log.ts";
import { SqliteWriter } from "./writer.ts";

export interface SqliteStoreOptions extends ThreadData {
  readonly keys: LedgerKeys;
}

/** Another process holds the lock for well under a millisecond. */
const RETRY_MS = 1;

/**
 * Rows are written on the event loop, which takes microseconds, and synced by a thread of Node's pool, which waits for
 * the disk. Long operations run in a separate thread that starts on demand.
 */
export class SqliteStore implements LedgerStore {
  readonly #writer: SqliteWriter;
  readonly #log: WriteAheadLog;
  readonly #thread: SqliteThread;
  readonly #path: string;
  #turn: Promise<unknown> = Promise.resolve();

  constructor({ keys, path, keyFolder, checkpointEvery }: SqliteStoreOptions) {
    const data = { path, keyFolder, checkpointEvery };
    this.#path = path;
    this.#writer = new SqliteWriter({ ...data, keys, mode: "write-unsynced" });
    this.#thread = new SqliteThread(data);
    this.#log = new WriteAheadLog({ path, empty: () => this.#thread.call("emptyLog") });
  }

  append(drafts: readonly Draft[]): Promise<Appended> {
    return this.#write(() => this.#writer.append(drafts));
  }

  /** Appends rows together with other changes, in one transaction. */
  protected appendWith(prepare: (db: SqliteConnection) => readonly Draft[]): Promise<Appended> {
    return this.#write(() => this.#writer.appendWith(prepare));
  }

  /** A transaction that is not synced: it survives when the process is killed, but a power cut may undo it. */
  protected async transact<T>(act: (db: SqliteConnection) => T): Promise<T> {
    if (this.#log.isDamaged) await this.#log.repair();
    try {
      const result = await this.#unlocked(() => this.#writer.transact(act));
      this.#log.grows();
      return result;
    } catch (error) {
      // The writer may have closed its connection, and the next one may have another log.
      await this.#log.forget();
      throw storeError(error, this.#path);
    }
  }

  seal(): Promise<Appended> {
    return this.#write(() => this.#writer.seal());
  }

  async hashAt(seq: number): Promise<string | undefined> {
    return this.#writer.hashAt(seq);
  }

  cut(beforeMs: number): Promise<Cut | undefined> {
    return this.#thread.call("cut", beforeMs);
  }

  head(): Promise<LedgerHead> {
    return this.#thread.call("head");
  }

  list(filter: LedgerFilter, page: Page): Promise<readonly LedgerRow[]> {
    return this.#thread.call("list", filter, page);
  }

  get(seq: number): Promise<LedgerRow | undefined> {
    return this.#thread.call("get", seq);
  }

  stats(filter: LedgerFilter, dayShifts?: readonly DayShift[]): Promise<LedgerStats> {
    return this.#thread.call("stats", filter, dayShifts);
  }

  count(filter: LedgerFilter): Promise<number> {
    return this.#thread.call("count", filter);
  }

  timeline(filter: LedgerFilter, span: TimelineSpan): Promise<readonly TimelineCount[]> {
    return this.#thread.call("timeline", filter, span);
  }

  verify(options: VerifyOptions): Promise<VerifyReport> {
    return this.#thread.call("verify", options);
  }

  async close(): Promise<void> {
    // Closed first, so that long operations end at once. A request to empty the log that was sent before is still
    // served.
    const ended = this.#thread.close();
    await this.#log.close();
    await ended;
    this.#writer.close();
  }

  /** Writes run one after another: a write must not build on one that failed. */
  #write(act: () => Appended): Promise<Appended> {
    const written = this.#turn.then(() => this.#writeNow(act));
    this.#turn = written.catch(() => undefined);
    return written;
  }

  async #writeNow(act: () => Appended): Promise<Appended> {
    if (this.#log.isDamaged) await this.#log.repair();
    try {
      const appended = await this.#unlocked(act);
      await this.#log.sync(appended.seqs.length);
      return appended;
    } catch (error) {
      this.#writer.abandon();
      // The next connection may have another log: SQLite removes a log with the last connection that used it.
      await this.#log.forget();
      throw storeError(error, this.#path);
    }
  }

  /** Waits for the lock as long as the database would, but without blocking the event loop. */
  async #unlocked<T>(act: () => T): Promise<T> {
    const endsAtMs = performance.now() + BUSY_TIMEOUT_MS;
    for (;;) {
      try {
        return act();
      } catch (error) {
        if (!isLocked(error) || performance.now() > endsAtMs) throw error;
        await sleep(RETRY_MS);
      }
    }
  }
}
