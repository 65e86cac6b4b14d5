import type { LogLevel } from "../capability/context.ts";
import type { Caller } from "../call/caller.ts";
import type { Lifeline } from "../call/lifeline.ts";
import type { ClientQuestions } from "./conversations/client-questions.ts";
import type { ClientCapabilities } from "./exchange.ts";
import type { JsonRpcMessage } from "./json-rpc.ts";
import type { Mcp } from "./mcp.ts";
import type { Subscriptions } from "./subscriptions.ts";

/** What a connection has settled with its client. Requests read it, and a few methods change it. */
export interface Peer {
  /** The revision that `initialize` settled on. */
  negotiatedVersion: string | undefined;
  /** What the client declared in its handshake. */
  capabilities: ClientCapabilities;
  /** The lowest level of the log messages that the client wants. Default: all. */
  logLevel: LogLevel | undefined;
  /** Resources that the client watches one by one, and as whom. */
  readonly watched: Map<string, Caller>;
  readonly questions: ClientQuestions;
  readonly subscriptions: Subscriptions;
}

/** One request that is being served: on which connection, for whom, and how to reach the client before the answer. */
export interface ServedRequest {
  readonly mcp: Mcp;
  readonly peer: Peer;
  readonly caller: Caller;
  readonly traceId: string;
  /** Ends when the client cancels or is gone. */
  readonly life: Lifeline;
  /** Sends a message that belongs to the request, before its answer. */
  readonly send: (message: JsonRpcMessage) => void;
  /** Whether the client can be sent anything before the answer. */
  readonly canStream: boolean;
  readonly closeStream: () => void;
  /** Ends the client's connection: it may not go on listening to what it asked for. */
  readonly cut: (() => void) | undefined;
  /** Throws what the transport has against the request. */
  readonly check: (() => void) | undefined;
}
