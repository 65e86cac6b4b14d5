import type { Principal } from "../../auth/principal.ts";
import type {
  AskOptions,
  CallContext,
  ElicitAnswer,
  ElicitForm,
  ElicitUrl,
  HandlerSandbox,
  LogLevel,
  Root,
  SampleAnswer,
  SampleRequest,
} from "../../capability/context.ts";
import { OwlError } from "../../errors/owl-error.ts";
import { withoutUndefined } from "../../platform/records.ts";
import { QuestionRefused } from "./wire-error.ts";
import type { FromWorker, QuestionKind, WireContext, WireError } from "./worker-protocol.ts";

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

type CallState =
  | { readonly kind: "running" }
  /** The client no longer waits, and the function may still run. Messages are dropped; charges still count. */
  | { readonly kind: "cancelled"; readonly reason: Error }
  /** The function has returned or thrown. */
  | { readonly kind: "done"; readonly reason: Error | undefined };

/** The context of one call on the worker's side: each method sends a message to the server. */
export class WorkerContext implements CallContext {
  readonly principal: Principal;
  readonly traceId: string;
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
  readonly sessionId: string | undefined;
  readonly protocolVersion: string;
  readonly #id: number;
  readonly #send: (message: FromWorker) => void;
  #questions: Map<number, Waiting> | undefined;
  #asked = 0;
  #controller: AbortController | undefined;
  #state: CallState = { kind: "running" };
  #startMs: number | undefined;

  constructor(id: number, wire: WireContext, send: (message: FromWorker) => void) {
    this.#id = id;
    this.#send = send;
    this.principal = toPrincipal(wire.principal);
    this.traceId = wire.traceId;
    this.traceparent = wire.traceparent;
    this.tracestate = wire.tracestate;
    if (wire.traceparent !== undefined) this.#startMs = performance.now();
    this.sessionId = wire.sessionId;
    this.protocolVersion = wire.protocolVersion;
  }

  /** How long the call has run; set when it is traced. */
  get measured(): { readonly ms?: number } {
    return this.#startMs === undefined ? {} : { ms: performance.now() - this.#startMs };
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#state.kind !== "running" && this.#state.reason !== undefined)
        this.#controller.abort(this.#state.reason);
    }
    return this.#controller.signal;
  }

  /** Arrow functions, so that `const { progress } = context` works. */
  progress: CallContext["progress"] = (done, { total, message } = {}) => {
    if (this.#state.kind !== "running") return;
    this.#send(withoutUndefined({ t: "progress", id: this.#id, done, total, message }));
  };

  log: CallContext["log"] = (level: LogLevel, data: unknown, logger?: string) => {
    if (this.#state.kind !== "running") return;
    this.#send({ t: "log", id: this.#id, level, data, ...withoutUndefined({ logger }) });
  };

  elicit: CallContext["elicit"] = (request: ElicitForm | ElicitUrl, options?: AskOptions) =>
    this.#ask<ElicitAnswer>("elicit", request, options);

  sample: CallContext["sample"] = (request: SampleRequest, options?: AskOptions) =>
    this.#ask<SampleAnswer>("sample", request, options);

  roots: CallContext["roots"] = (options?: AskOptions) => this.#ask<readonly Root[]>("roots", undefined, options);

  startTask: CallContext["startTask"] = async () => void (await this.#ask<unknown>("startTask"));

  charge: CallContext["charge"] = (amount) => {
    if (!Number.isFinite(amount) || amount < 0)
      throw new TypeError("charge() takes a finite amount that is not negative");
    if (this.#state.kind !== "done") this.#send({ t: "charge", id: this.#id, amount });
  };

  listChanged: CallContext["listChanged"] = (list) => this.#send({ t: "listChanged", id: this.#id, list });

  closeStream: CallContext["closeStream"] = () => {
    if (this.#state.kind === "running") this.#send({ t: "closeStream", id: this.#id });
  };

  get sandbox(): HandlerSandbox {
    return {
      run: (code, options = {}) => this.#ask("sandbox", { verb: "run", code, ...options }),
      exec: (command, options = {}) => this.#ask("sandbox", { verb: "exec", command, ...options }),
      readFile: (path) => this.#ask("sandbox", { verb: "readFile", path }),
      writeFile: async (path, content) => void (await this.#ask("sandbox", { verb: "writeFile", path, content })),
    };
  }

  answer(q: number, value: unknown, error: WireError | undefined): void {
    const waiting = this.#questions?.get(q);
    this.#questions?.delete(q);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(new QuestionRefused(q, error.message));
  }

  cancel(reason: Error): void {
    if (this.#state.kind !== "running") return;
    this.#state = { kind: "cancelled", reason };
    this.#controller?.abort(reason);
    this.#rejectQuestions();
  }

  /** The function has returned or thrown. */
  settle(): void {
    this.#state = { kind: "done", reason: this.#state.kind === "cancelled" ? this.#state.reason : undefined };
    this.#rejectQuestions();
  }

  #rejectQuestions(): void {
    for (const waiting of this.#questions?.values() ?? []) waiting.reject(tooLate());
    this.#questions = undefined;
  }

  #ask<T>(what: QuestionKind, request?: unknown, { key }: AskOptions = {}): Promise<T> {
    if (this.#state.kind !== "running") return Promise.reject(tooLate());
    this.#asked += 1;
    const q = this.#asked;
    this.#questions ??= new Map();
    const questions = this.#questions;
    this.#send(withoutUndefined({ t: "ask", id: this.#id, q, what, request, key }));
    return new Promise((resolve, reject) => questions.set(q, { resolve, reject }));
  }
}

function tooLate(): OwlError {
  return new OwlError("execution_error", "the call has ended: its client cannot be asked");
}

function toPrincipal(value: unknown): Principal {
  if (isPrincipal(value)) return value;
  throw new TypeError("the server sent no principal");
}

function isPrincipal(value: unknown): value is Principal {
  return typeof value === "object" && value !== null && "id" in value;
}
