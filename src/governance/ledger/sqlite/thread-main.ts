import { parentPort, workerData } from "node:worker_threads";
import { loadLedgerKeys } from "../keys.ts";
import { LongWork } from "./long-work.ts";
import { storeError } from "./store-error.ts";
import type { ThreadData, ThreadReply, ThreadRequest } from "./thread-messages.ts";

type Serve = (...params: readonly never[]) => unknown;

/** The thread for whatever may take long: it must not hold up the server's own loop. */
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

// oxlint-disable-next-line typescript/no-unsafe-argument -- what the starter of this thread has passed
main(workerData);
