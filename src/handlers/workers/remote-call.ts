import type { CallContext, ElicitForm, ElicitUrl, LogLevel, SampleRequest } from "../../capability/context.ts";
import type { SchemaIssue } from "../../capability/schema.ts";
import { OwlError, messageOf } from "../../errors/owl-error.ts";
import { activeSpan, errorTypeOf, runInSpan } from "../../telemetry/tracing/active-span.ts";
import { centred, type Span } from "../../telemetry/tracing/span.ts";
import { withoutUndefined, isRecord } from "../../platform/records.ts";
import { fromWireError } from "./wire-error.ts";
import type {
  FromWorker,
  Operation,
  QuestionKind,
  Target,
  ToWorker,
  WireContext,
  WireError,
} from "./worker-protocol.ts";

/** A function or definition in a handler file. The object is the same for as long as the target is. */
export interface RemoteTarget {
  readonly target: Target;
  /** For messages: `the tool "echo"`. */
  readonly what: string;
  /** Its calls do not share the worker with others, so that killing the worker affects no other call. */
  readonly isExclusive: boolean;
}

/** The numbers of a worker's targets. Each target is announced to the worker once. */
export class TargetNumbers {
  readonly #announce: (n: number, target: Target) => void;
  readonly #numbers = new Map<RemoteTarget, number>();
  readonly #targets: RemoteTarget[] = [];

  constructor(announce: (n: number, target: Target) => void) {
    this.#announce = announce;
  }

  numberOf(remote: RemoteTarget): number {
    let n = this.#numbers.get(remote);
    if (n === undefined) {
      n = this.#targets.push(remote) - 1;
      this.#numbers.set(remote, n);
      this.#announce(n, remote.target);
    }
    return n;
  }

  at(n: number): RemoteTarget | undefined {
    return this.#targets[n];
  }
}

type RemoteJob =
  | { readonly op: Operation; readonly remote: RemoteTarget; readonly input: unknown }
  | { readonly op: "watch"; readonly remote: RemoteTarget }
  | { readonly op: "describe"; readonly file: string };

export interface RemoteCallOptions {
  readonly job: RemoteJob;
  readonly context?: CallContext | undefined;
  /** The error for issues that a schema in the worker reported. */
  readonly refused?: ((side: "input" | "output", issues: readonly SchemaIssue[]) => Error) | undefined;
  /** Serves the handler's requests to the caller's sandbox. */
  readonly useSandbox?: UseSandbox | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** What runs a call: it is told when the caller no longer waits. */
export interface CallRunner {
  cancel(id: number, call: RemoteCall): void;
}

export type UseSandbox = (context: CallContext, request: unknown) => Promise<unknown>;

const LEVELS = new Set(["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]);

/** The server's side of one call in a worker. */
export class RemoteCall {
  readonly job: RemoteJob;
  readonly context: CallContext | undefined;
  readonly #options: RemoteCallOptions;
  #refusals: Map<number, unknown> | undefined;
  /** Its file could not be loaded, and it was sent again. */
  isSecondTry = false;
  /** abandoned: the caller no longer waits, but the worker may still run it. */
  #state: "waiting" | "abandoned" | "over" = "waiting";
  #assigned: { readonly runner: CallRunner; readonly id: number } | undefined;
  #unlink: (() => void) | undefined;
  readonly #span: Span | undefined;

  constructor(options: RemoteCallOptions) {
    this.#options = options;
    this.job = options.job;
    this.context = options.context;
    this.#unlink = options.context?.onEnd?.(() => this.#abandon());
    this.#span = activeSpan()?.child({ name: "handler", kind: "client" });
  }

  /** Set while the call is traced. */
  get traceparent(): string | undefined {
    return this.#span?.traceparent;
  }

  get tracestate(): string | undefined {
    return this.#span?.state;
  }

  get isAbandoned(): boolean {
    return this.#state === "abandoned";
  }

  /** `runner` runs it now, under this number. */
  assignTo(runner: CallRunner, id: number): void {
    this.#assigned = { runner, id };
  }

  /** The message that starts it. */
  toRequest(
    id: number,
    targets: TargetNumbers,
    ctx: WireContext | undefined,
  ): Extract<ToWorker, { readonly id: number }> {
    const { job } = this;
    if (job.op === "describe") return { t: "describe", id, file: job.file };
    const n = targets.numberOf(job.remote);
    return job.op === "watch" ? { t: "watch", id, n } : { t: "call", id, n, op: job.op, input: job.input, ctx };
  }

  get what(): string {
    return this.job.op === "describe" ? `the file ${this.job.file}` : this.job.remote.what;
  }

  /** The caller; undefined for jobs of the server itself. */
  get client(): string | undefined {
    return this.context?.principal.id;
  }

  get isExclusive(): boolean {
    return this.job.op !== "describe" && this.job.remote.isExclusive;
  }

  settle(message: Extract<FromWorker, { t: "done" | "fail" }>): void {
    if (this.#span !== undefined && message.ms !== undefined)
      this.#span.record({ name: "handler run", ...centred(this.#span, { startMs: 0, durationMs: message.ms }) });
    if (message.t === "fail") return this.fail(this.#toError(message.error));
    if (this.#finish()) {
      this.#span?.end();
      this.#options.resolve(message.bytes === undefined ? message.value : Buffer.from(message.bytes, "base64"));
    }
  }

  fail(error: unknown): void {
    if (!this.#finish()) return;
    this.#span?.end(errorTypeOf(error));
    this.#options.reject(error);
  }

  /** The worker ended during the call. An abandoned call is charged its reserved cost, since the real one is unknown. */
  lose(error: unknown): void {
    if (this.isAbandoned) this.context?.forfeit?.();
    this.fail(error);
  }

  /** A message of the handler while it runs. Answers to its questions go through `send`. */
  receive(message: FromWorker, send: (message: ToWorker) => void): void {
    const { context } = this;
    if (context === undefined) return;
    switch (message.t) {
      case "progress":
        return context.progress(
          message.done ?? 0,
          withoutUndefined({ total: message.total, message: message.message }),
        );
      case "log":
        return isLevel(message.level) ? context.log(message.level, message.data, message.logger) : undefined;
      case "charge":
        return context.charge(message.amount);
      case "closeStream":
        return context.closeStream();
      case "listChanged":
        return isList(message.list) ? context.listChanged(message.list) : undefined;
      case "ask":
        return this.#ask(context, message, send);
      default:
        return undefined;
    }
  }

  /** Why the call was cancelled, for the worker. */
  get endReason(): WireError {
    const reason: unknown = this.context?.signal.reason;
    if (reason instanceof OwlError) return { message: reason.message, kind: reason.kind };
    return { message: "the call was cancelled", kind: "cancelled" };
  }

  #ask(context: CallContext, message: Extract<FromWorker, { t: "ask" }>, send: (message: ToWorker) => void): void {
    const { id, q, what, request, key } = message;
    const ask = what === "sandbox" ? this.#options.useSandbox : QUESTIONS[what];
    const answer =
      ask === undefined ? Promise.reject(unanswerable(what)) : runInSpan(this.#span, () => ask(context, request, key));
    answer.then(
      (value) => send({ t: "answer", id, q, value }),
      (thrown: unknown) => {
        this.#refusals ??= new Map();
        this.#refusals.set(q, thrown);
        const text = messageOf(thrown);
        send({ t: "answer", id, q, error: { message: text } });
      },
    );
  }

  /** A refusal that the handler rethrew unchanged becomes the original error again. */
  #toError(error: WireError): unknown {
    const { q, issues, side = "input" } = error;
    if (q !== undefined && this.#refusals?.has(q) === true) return this.#refusals.get(q);
    if (issues !== undefined && this.#options.refused !== undefined) return this.#options.refused(side, issues);
    return fromWireError(error);
  }

  #finish(): boolean {
    if (this.#state === "over") return false;
    this.#state = "over";
    this.#unlink?.();
    return true;
  }

  #abandon(): void {
    if (this.#state === "over") return;
    this.#state = "abandoned";
    this.#assigned?.runner.cancel(this.#assigned.id, this);
  }
}

type AskClient = (context: CallContext, request: unknown, key: string | undefined) => Promise<unknown>;

/** The protocol layer checks the contents of questions. */
const QUESTIONS: Readonly<Partial<Record<QuestionKind, AskClient>>> = {
  elicit: (context, request, key) =>
    isElicit(request) ? context.elicit(request, keyed(key)) : Promise.reject(senseless("elicit")),
  sample: (context, request, key) =>
    isSample(request) ? context.sample(request, keyed(key)) : Promise.reject(senseless("sample")),
  roots: (context, _request, key) => context.roots(keyed(key)),
  startTask: (context) => context.startTask(),
};

function keyed(key: string | undefined): { readonly key?: string } {
  return key === undefined ? {} : { key };
}

/** Handlers in JavaScript may ask anything: only the members that the server needs are checked. */
function isElicit(request: unknown): request is ElicitForm | ElicitUrl {
  if (!isRecord(request) || !("message" in request)) return false;
  return "url" in request ? typeof request["url"] === "string" : "requestedSchema" in request;
}

function isSample(request: unknown): request is SampleRequest {
  return isRecord(request) && "maxTokens" in request && Array.isArray(request["messages"]);
}

function senseless(what: string): OwlError {
  return new OwlError("execution_error", `the handler's question (${what}) lacks required members`);
}

function unanswerable(what: string): OwlError {
  if (what === "sandbox") return new OwlError("sandbox_unavailable", "this server has no sandboxes");
  return new OwlError("execution_error", `there is no question named "${what.slice(0, 64)}"`);
}

function isLevel(level: string): level is LogLevel {
  return LEVELS.has(level);
}

function isList(list: string): list is "tools" | "resources" | "prompts" {
  return list === "tools" || list === "resources" || list === "prompts";
}
