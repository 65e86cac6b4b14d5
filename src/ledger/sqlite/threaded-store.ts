import type { Cut } from "../checkpoint.ts";
import type { LedgerHead } from "../ledger.ts";
import type { LedgerFilter, LedgerStats, Page } from "../query.ts";
import type { Draft, LedgerRow } from "../row.ts";
import type { Appended, LedgerStore } from "../store.ts";
import type { VerifyOptions, VerifyReport } from "../verify.ts";
import { SqliteThread } from "./thread.ts";
import type { ThreadData } from "./thread-messages.ts";

/** SQLite in two threads: writes wait for the disk in one, long reads in another that starts when somebody asks. */
export class ThreadedSqliteStore implements LedgerStore {
  readonly #writer: SqliteThread;
  readonly #reader: SqliteThread;

  constructor(data: Omit<ThreadData, "role">) {
    this.#writer = new SqliteThread({ ...data, role: "write" });
    this.#reader = new SqliteThread({ ...data, role: "read" });
  }

  append(drafts: readonly Draft[]): Promise<Appended> {
    return this.#writer.call("append", JSON.stringify(drafts));
  }

  seal(): Promise<Appended> {
    return this.#writer.call("seal");
  }

  cut(beforeMs: number): Promise<Cut | undefined> {
    return this.#writer.call("cut", beforeMs);
  }

  head(): Promise<LedgerHead> {
    return this.#reader.call("head");
  }

  list(filter: LedgerFilter, page: Page): Promise<readonly LedgerRow[]> {
    return this.#reader.call("list", filter, page);
  }

  get(seq: number): Promise<LedgerRow | undefined> {
    return this.#reader.call("get", seq);
  }

  stats(filter: LedgerFilter): Promise<LedgerStats> {
    return this.#reader.call("stats", filter);
  }

  verify(options: VerifyOptions): Promise<VerifyReport> {
    return this.#reader.call("verify", options);
  }

  async close(): Promise<void> {
    await Promise.all([this.#writer.close(), this.#reader.close()]);
  }
}
