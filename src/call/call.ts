import type { CallContext, ReadOptions, UsedSandbox } from "../capability/context.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Lifeline } from "./lifeline.ts";
import type { Principal } from "../auth/principal.ts";

/** How a capability communicates with the client while it runs. The protocol implements it, once per era. */
export interface Conversation extends Pick<
  CallContext,
  "progress" | "log" | "elicit" | "sample" | "roots" | "startTask" | "closeStream" | "listChanged"
> {
  /** Whether the client asked for progress notifications. */
  readonly wantsProgress: boolean;
}

/** One call in the pipeline. */
export interface Call {
  readonly caller: Caller;
  readonly traceId: string;
  /** The client's own id of the request, for the log. */
  readonly requestId?: string | number | undefined;
  readonly life: Lifeline;
  readonly conversation: Conversation;
  readonly readOptions?: ReadOptions | undefined;
  /** Called once or twice when rules and limits have admitted the call: it runs now, or waits for an approval. */
  readonly onPassed?: (() => void) | undefined;
  /** Receives the costs that the capability reports, when costs are counted. */
  readonly charge?: (amount: number) => void;
  /** Receives the sandbox whose traffic is counted for the call, when costs are counted. */
  readonly meter?: (used: UsedSandbox) => void;
  readonly watch?: RunWatch;
  /**
   * Whether an earlier round of the call has paid its fixed price. Uses up the request state: called once, before the
   * work begins.
   */
  readonly isPaid?: (() => Promise<boolean>) | undefined;
}

/** Observes the run of a call, which may continue long after its client has an answer. */
export interface RunWatch {
  /** @param stop Ends the run, with the error as the answer to the client. */
  began(stop: (error: OwlError) => void): void;
  ended(): void;
  /** The run was killed: what else it would have charged is not known. */
  lost(): void;
}

/** Thrown through a running capability to end it without an outcome: the client must answer a question first. */
export class CallSuspended extends Error {
  constructor() {
    super("the call waits for the client's answer and runs again when it has come");
    this.name = "CallSuspended";
  }
}

/** Which resources a caller may see. */
export interface Sight {
  sees(uri: string, caller: Caller): boolean;
}

export function contextOf(call: Call, life: Lifeline, sight?: Sight): CallContext {
  return new Context(call, life, sight);
}

/**
 * Its functions are properties of the object, since tools destructure it. The signal is a getter of the class: an
 * accessor in an object literal makes a hidden class for each object, which is in the old generation of the heap and
 * keeps everything alive that the call had.
 */
class Context implements CallContext {
  readonly #call: Call;
  readonly #life: Lifeline;
  readonly #sight: Sight | undefined;
  readonly principal: CallContext["principal"];
  readonly label: CallContext["label"];
  readonly traceId: string;
  readonly sessionId: CallContext["sessionId"];
  readonly protocolVersion: CallContext["protocolVersion"];
  readonly readOptions?: ReadOptions;

  constructor(call: Call, life: Lifeline, sight: Sight | undefined) {
    this.#call = call;
    this.#life = life;
    this.#sight = sight;
    const { caller, traceId, readOptions } = call;
    this.principal = caller.principal;
    this.label = caller.label;
    this.traceId = traceId;
    this.sessionId = caller.sessionId;
    this.protocolVersion = caller.protocolVersion;
    if (readOptions !== undefined) this.readOptions = readOptions;
  }

  get signal(): AbortSignal {
    return this.#life.signal;
  }

  /** The conversation, as long as the client can receive messages. */
  get #open(): Conversation | undefined {
    return this.#life.isSettled ? undefined : this.#call.conversation;
  }

  progress: CallContext["progress"] = (done, options) => this.#open?.progress(done, options);
  log: CallContext["log"] = (level, data, logger) => this.#open?.log(level, data, logger);
  elicit: CallContext["elicit"] = (request, options) => this.#open?.elicit(request, options) ?? tooLate();
  sample: CallContext["sample"] = (request, options) => this.#open?.sample(request, options) ?? tooLate();
  roots: CallContext["roots"] = (options) => this.#open?.roots(options) ?? tooLate();
  startTask: CallContext["startTask"] = () => this.#open?.startTask() ?? tooLate();
  closeStream: CallContext["closeStream"] = () => this.#open?.closeStream();
  listChanged: CallContext["listChanged"] = (kind) => this.#call.conversation.listChanged(kind);
  /** A run that continues after the call is charged until the run has ended: cancelling a call saves no cost. */
  charge: CallContext["charge"] = (amount) => {
    if (!Number.isFinite(amount) || amount < 0)
      throw new TypeError("charge() takes a finite amount that is not negative");
    if (!this.#life.hasOutcome) this.#call.charge?.(amount);
  };
  meter: NonNullable<CallContext["meter"]> = (used) => this.#call.meter?.(used);
  onEnd: NonNullable<CallContext["onEnd"]> = (listener) => this.#life.onEnd(listener);
  seesResource: NonNullable<CallContext["seesResource"]> = (uri) => this.#sight?.sees(uri, this.#call.caller) ?? true;

  forfeit(): void {
    this.#call.watch?.lost();
  }
}

function tooLate(): Promise<never> {
  return Promise.reject(new OwlError("execution_error", "the call is over: its client cannot be asked any more"));
}

/** The principal and client label of a call, and its transport. One per connection, session or stateless request. */
export interface Caller {
  readonly principal: Principal;
  /** `X-MCP-Client-ID`: a client can send any value, so it proves nothing and may only tighten limits. */
  readonly label: string | undefined;
  readonly transport: "stdio" | "http" | "sse" | "local";
  readonly protocolVersion: string;
  /** The MCP session, where the transport has one. */
  readonly sessionId: string | undefined;
}

interface Reading {
  readonly used: UsedSandbox;
  readonly atStart: number;
}

/**
 * What the sandboxes of one call have moved over their network while it ran. Connections belong to the sandbox and not
 * to the call: when two calls share a sandbox at the same time, each pays for the traffic during its run.
 */
export class EgressMeter {
  #readings: Reading[] | undefined;

  /** The first sandbox that the call used. */
  get sandbox(): UsedSandbox | undefined {
    return this.#readings?.[0]?.used;
  }

  add(used: UsedSandbox): void {
    (this.#readings ??= []).push({ used, atStart: used.bytesMoved });
  }

  bytes(): number {
    const readings = this.#readings ?? [];
    return readings.reduce((sum, { used, atStart }) => sum + Math.max(0, used.bytesMoved - atStart), 0);
  }
}

/**
 * A copy with added or replaced fields, for code that runs in every call: Node 20 takes about a microsecond for each
 * new field after a spread (`{ ...base, more }`), and a twentieth of that here.
 */
export function withFields<B extends object, M extends object>(base: B, more: M): B & M {
  // `Object.assign` would make this field the prototype of the copy, and the author of `base` could choose it.
  if (Object.hasOwn(base, "__proto__")) return { ...base, ...more };
  return Object.assign({}, base, more);
}
