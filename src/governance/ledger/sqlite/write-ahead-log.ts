import { close, fdatasync, openSync } from "node:fs";
import { promisify } from "node:util";

export interface WriteAheadLogOptions {
  /** Of the database. */
  readonly path: string;
  /** Moves what is in the log to the database, synced. */
  readonly empty: () => Promise<void>;
}

const syncData = promisify(fdatasync);
const closeFile = promisify(close);

/** A commit changes about six pages, and eight rows fill one more. */
const COMMIT_PAGES = 6;
const ROWS_PER_PAGE = 8;
/** 16 MiB: most pages change again and again, and are moved only once. */
const FULL_PAGES = 4000;

/**
 * SQLite's write-ahead log, synced here instead of by SQLite, which would wait for the disk in the thread that commits.
 * What is committed is in the log's file, so that syncing this file makes it durable, as `synchronous = FULL` does.
 */
export class WriteAheadLog {
  readonly #options: WriteAheadLogOptions;
  #file: number | undefined;
  #pages = 0;
  #emptying: Promise<void> | undefined;
  #isDamaged = false;

  constructor(options: WriteAheadLogOptions) {
    this.#options = options;
  }

  /** After a failed sync, the state of the disk is unknown: no write may build on it. */
  get isDamaged(): boolean {
    return this.#isDamaged;
  }

  /** Resolves when everything that is committed now is on disk. */
  async sync(rows: number): Promise<void> {
    try {
      this.#file ??= openSync(`${this.#options.path}-wal`, "r+");
      await syncData(this.#file);
    } catch (error) {
      this.#isDamaged = true;
      throw error;
    }
    this.grows(rows);
  }

  /** Called after every commit. */
  grows(rows = 0): void {
    this.#pages += COMMIT_PAGES + rows / ROWS_PER_PAGE;
    if (this.#pages >= FULL_PAGES) this.#emptyBeside();
  }

  async repair(): Promise<void> {
    await this.#options.empty();
    this.#isDamaged = false;
  }

  async close(): Promise<void> {
    await this.#emptying;
    await this.forget();
  }

  /** Closes the log's file. The next sync opens it again. */
  async forget(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    if (file !== undefined) await closeFile(file).catch(() => undefined);
  }

  #emptyBeside(): void {
    if (this.#emptying !== undefined) return;
    this.#pages = 0;
    this.#emptying = this.#empty();
  }

  async #empty(): Promise<void> {
    try {
      await this.#options.empty();
    } catch {
      // What remains in the log is moved the next time.
    } finally {
      this.#emptying = undefined;
    }
  }
}
