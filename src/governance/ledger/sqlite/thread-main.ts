import { parentPort, workerData } from "node:worker_threads";
import { loadLedgerKeys, type LedgerKeys } from "../keys.ts";
import { storeError } from "./connection.ts";
import type { ThreadData, ThreadReply, ThreadRequest, ThreadMethods } from "./thread.ts";
import type { Cut } from "../checkpoint.ts";
import { SqliteReader, type SqliteReaderOptions } from "./reader.ts";
import { SqliteWriter } from "./writer.ts";

type Serve = (...params: readonly never[]) => unknown;

/** The thread for operations that may take long and would block the event loop. */
function main({ path, keyFolder, checkpointEvery }: ThreadData): void {
  const loadKeys = () => loadLedgerKeys({ folder: keyFolder, create: false });
  const store = new LongWork({ path, loadKeys, checkpointEvery });
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  const reply = (message: ThreadReply): void => parentPort?.postMessage(message);
  const answer = async ({ id, method, params }: ThreadRequest): Promise<void> => {
    try {
      const serve: unknown = Reflect.get(store, method);
      if (!isServe(serve)) throw new TypeError(`no method ${method}`);
      reply({ id, value: await Reflect.apply(serve, store, params) });
    } catch (error) {
      const { message, hint, retryable } = storeError(error, path);
      reply({ id, failure: { message, hint, retryable } });
    }
    if (method === "close") parentPort?.close();
  };
  parentPort?.on("message", (request: ThreadRequest) => void answer(request));
}

function isServe(value: unknown): value is Serve {
  return typeof value === "function";
}

interface LongWorkOptions extends SqliteReaderOptions {
  readonly loadKeys: () => LedgerKeys;
  readonly checkpointEvery: number;
}

/** What a ledger needs besides appends: reads, cuts, and emptying the log. */
class LongWork extends SqliteReader implements ThreadMethods {
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

// oxlint-disable-next-line typescript/no-unsafe-argument -- what the starter of this thread has passed
main(workerData);
