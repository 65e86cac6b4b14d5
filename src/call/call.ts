import type { CallContext, ReadOptions, UsedSandbox } from "../capability/context.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Lifeline } from "./lifeline.ts";
import type { Principal } from "../auth/principal.ts";

/** What a capability can say to the client while it runs. The protocol implements it, once per era. */
export interface Conversation extends Pick<
  CallContext,
  "progress" | "log" | "elicit" | "sample" | "roots" | "startTask" | "closeStream" | "listChanged"
> {
  /** Whether the client asked to be told of progress. */
  readonly wantsProgress: boolean;
}

/** One call on its way through the pipeline. */
export interface Call {
  readonly caller: Caller;
  readonly traceId: string;
  /** The client's own id of the request, for the log. */
  readonly requestId?: string | number | undefined;
  readonly life: Lifeline;
  readonly conversation: Conversation;
  readonly readOptions?: ReadOptions | undefined;
  /** Hears, once or twice, that rules and limits let the call through: it runs now, or waits for somebody's yes. */
  readonly onPassed?: (() => void) | undefined;
  /** Takes what the capability says it cost, where somebody keeps count. */
  readonly charge?: (amount: number) => void;
  /** Counts what the call's sandbox moves over its network, where somebody keeps count. */
  readonly meter?: (used: UsedSandbox) => void;
  readonly watch?: RunWatch;
  /** Whether an earlier round of the call has paid its fixed price. Uses up what says so: asked once, before the work begins. */
  readonly isPaid?: (() => Promise<boolean>) | undefined;
}

/** Hears of what runs for a call, which may go on when its client has long had an answer. */
export interface RunWatch {
  /** @param stop Ends it; its client then has the error as an answer. */
  began(stop: (error: OwlError) => void): void;
  ended(): void;
  /** It was ended by force: nobody can say what else it would have charged. */
  lost(): void;
}

/** Thrown through a running capability to end it without an outcome: the client must answer something first. */
export class CallSuspended extends Error {
  constructor() {
    super("the call waits for the client's answer and runs again when it has come");
    this.name = "CallSuspended";
  }
}

/** What callers may know of. */
export interface Sight {
  sees(uri: string, caller: Caller): boolean;
}

export function contextOf(call: Call, life: Lifeline, sight?: Sight): CallContext {
  return new Context(call, life, sight);
}

/**
 * Its functions are its own, since tools take them out of it. The signal is not: an accessor in a literal makes a hidden
 * class for each object, which lives in the old part of the heap, and with it all that the call had.
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

  /** Whom to talk to, as long as somebody hears it. */
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
  /** What runs on after its end costs what it says until it has ended: who cancels saves nothing. */
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

/** Who calls, and over what. One per connection, session or stateless request. */
export interface Caller {
  readonly principal: Principal;
  /** `X-MCP-Client-ID`: anyone can send it, so it proves nothing and may only tighten limits. */
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
 * What the sandboxes of one call have moved over their network while it ran. Connections are the sandbox's and not the
 * call's: of two calls that share a sandbox at the same time each pays for what moved in its own time.
 */
export class EgressMeter {
  #readings: Reading[] | undefined;

  /** The first that the call used. */
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
 * A copy with these fields beside or over its own, for what is done in every call: Node 20 takes about a microsecond for
 * each new field behind a spread (`{ ...base, more }`), and a twentieth of that here.
 */
export function withFields<B extends object, M extends object>(base: B, more: M): B & M {
  // Assigned, it would be what the copy inherits from: who wrote the base would choose that.
  if (Object.hasOwn(base, "__proto__")) return { ...base, ...more };
  return Object.assign({}, base, more);
}
