import type { CallContext, ReadWish } from "../capabilities/context.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Caller } from "./caller.ts";
import type { Lifeline } from "./lifeline.ts";

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
  readonly wish?: ReadWish;
  /** Takes what the capability says it cost, where somebody keeps count. */
  readonly charge?: (amount: number) => void;
  /** Counts what the call's sandbox moves over its network, where somebody keeps count. */
  readonly meter?: (bytesMoved: () => number) => void;
  /** Takes a function that ends what runs for the call; its client then has the error as an answer. */
  readonly onStop?: (stop: (error: OwlError) => void) => void;
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
  const { caller, traceId, conversation, charge, meter, wish } = call;
  return {
    principal: caller.principal,
    label: caller.label,
    traceId,
    sessionId: caller.sessionId,
    ...(wish !== undefined && { wish }),
    protocolVersion: caller.protocolVersion,
    get signal() {
      return life.signal;
    },
    progress: (done, options) => void (life.isSettled || conversation.progress(done, options)),
    log: (level, data, logger) => void (life.isSettled || conversation.log(level, data, logger)),
    elicit: (request, options) => (life.isSettled ? tooLate() : conversation.elicit(request, options)),
    sample: (request, options) => (life.isSettled ? tooLate() : conversation.sample(request, options)),
    roots: (options) => (life.isSettled ? tooLate() : conversation.roots(options)),
    startTask: () => (life.isSettled ? tooLate() : conversation.startTask()),
    onEnd: (listener) => life.onEnd(listener),
    meter: (bytesMoved) => meter?.(bytesMoved),
    seesResource: (uri) => sight?.sees(uri, caller) ?? true,
    charge: (amount) => void (life.isSettled || charge?.(amount)),
    listChanged: (kind) => conversation.listChanged(kind),
    closeStream: () => void (life.isSettled || conversation.closeStream()),
  };
}

function tooLate(): Promise<never> {
  return Promise.reject(new OwlError("execution_error", "the call is over: its client cannot be asked any more"));
}
