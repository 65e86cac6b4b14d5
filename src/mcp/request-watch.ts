import type { Caller } from "../call/caller.ts";
import type { JsonRpcRequest, JsonRpcResponse } from "./json-rpc.ts";

export interface RequestOrigin {
  readonly caller: Caller;
  readonly traceId: string;
}

/** Takes the answer; nothing when the client cancelled, or gets it in pieces over a stream. */
export type OnAnswer = (answer: JsonRpcResponse | undefined) => void;

/** A session that began with a handshake and is over, at least on this server. */
export interface EndedSession {
  readonly caller: Caller;
  /** What the handshake settled on. */
  readonly version: string;
  readonly durationMs: number;
}

/** Hears of every request and its answer, for the log and the metrics. It must neither throw nor wait. */
export interface RequestWatch {
  begin(request: JsonRpcRequest, origin: RequestOrigin): OnAnswer;
  sessionEnded?(session: EndedSession): void;
}
