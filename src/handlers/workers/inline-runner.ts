import { NumberedSlots } from "../../platform/slots.ts";
import type { Runner } from "../served-file.ts";
import { makeImporter } from "./import-file.ts";
import { type CallRunner, RemoteCall, type RemoteTarget, TargetNumbers, type UseSandbox } from "./remote-call.ts";
import { WorkerHost } from "./worker-host.ts";
import type { FromWorker } from "./worker-protocol.ts";

interface InlineRunnerOptions {
  readonly cacheFolder: string;
  readonly useSandbox?: UseSandbox | undefined;
  readonly onChanged: (remote: RemoteTarget) => void;
  readonly onListChanged: (list: string) => void;
}

/** Runs handlers in the server's own process, with the same host as in a worker. */
export class InlineRunner implements Runner, CallRunner {
  readonly #options: InlineRunnerOptions;
  readonly #host: WorkerHost;
  readonly #calls = new NumberedSlots<RemoteCall>();
  readonly #targets = new TargetNumbers((n, target) => this.#host.receive({ t: "target", n, target }));
  #lastId = 0;

  constructor(options: InlineRunnerOptions) {
    this.#options = options;
    this.#host = new WorkerHost({
      importFile: makeImporter({ cacheFolder: options.cacheFolder }),
      send: (message) => this.#receive(message),
    });
  }

  run(options: Parameters<Runner["run"]>[0]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call = new RemoteCall({ ...options, useSandbox: this.#options.useSandbox, resolve, reject });
      this.#lastId += 1;
      const id = this.#lastId;
      this.#calls.set(id, call);
      call.assignTo(this, id);
      this.#host.receive(call.toRequest(id, this.#targets, call.context));
    });
  }

  cancel(id: number, call: RemoteCall): void {
    this.#host.receive({ t: "cancel", id, error: call.endReason });
  }

  #receive(message: FromWorker): void {
    if (message.t === "changed") {
      const remote = this.#targets.at(message.n);
      if (remote !== undefined) this.#options.onChanged(remote);
      return;
    }
    if (!("id" in message)) return;
    const call = this.#calls.get(message.id);
    if (message.t === "done" || message.t === "fail") {
      this.#calls.delete(message.id);
      call?.settle(message);
    } else if (call !== undefined) call.receive(message, (answer) => this.#host.receive(answer));
    else if (message.t === "listChanged") this.#options.onListChanged(message.list);
  }
}
