import type { Cut } from "../checkpoint.ts";
import type { LedgerKeys } from "../keys.ts";
import { SqliteReader, type SqliteReaderOptions } from "./reader.ts";
import type { ThreadMethods } from "./thread-messages.ts";
import { SqliteWriter } from "./writer.ts";

export interface LongWorkOptions extends SqliteReaderOptions {
  readonly loadKeys: () => LedgerKeys;
  readonly checkpointEvery: number;
}

/** What a ledger needs beside the appends: reading it, cutting its beginning off, emptying its log. */
export class LongWork extends SqliteReader implements ThreadMethods {
  readonly #options: LongWorkOptions;
  #writer: SqliteWriter | undefined;

  constructor(options: LongWorkOptions) {
    super(options);
    this.#options = options;
  }

  cut(beforeMs: number): Cut | undefined {
    return this.#openWriter().cut(beforeMs);
  }

  emptyLog(): void {
    this.#openWriter().emptyLog();
  }

  override async close(): Promise<void> {
    this.#writer?.close();
    await super.close();
  }

  #openWriter(): SqliteWriter {
    const { path, loadKeys, checkpointEvery } = this.#options;
    return (this.#writer ??= new SqliteWriter({ path, keys: loadKeys(), checkpointEvery }));
  }
}
