import type { Conversation, Caller } from "../call/call.ts";
import type { Lifeline } from "../call/lifeline.ts";
import type { RequestId } from "./json-rpc.ts";

export interface ClientCapabilities {
  readonly elicitation?: Readonly<Record<string, unknown>>;
  readonly sampling?: Readonly<Record<string, unknown>>;
  readonly roots?: Readonly<Record<string, unknown>>;
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** One request in the protocol layer: its caller, and every way to reach the client before the answer. */
export interface Exchange {
  readonly caller: Caller;
  readonly traceId: string;
  /** The client's own id of the request, for the log. */
  readonly requestId?: RequestId | undefined;
  /** Ends when the client cancels or disconnects. */
  readonly life: Lifeline;
  readonly capabilities: ClientCapabilities;
  /** The client's answers to what an earlier round asked, and the state that came with the questions. */
  readonly inputResponses: Readonly<Record<string, unknown>> | undefined;
  readonly requestState: string | undefined;
  /** Sends to the client while the request runs. */
  readonly conversation: Conversation;
}
