import type { LogLevel } from "../capability/context.ts";
import type { Caller } from "../call/call.ts";
import type { Lifeline } from "../call/lifeline.ts";
import type { ClientCapabilities } from "./exchange.ts";
import type { JsonRpcMessage, JsonRpcRequest, JsonRpcNotification, JsonRpcResponse } from "./json-rpc.ts";
import type { Mcp } from "./mcp.ts";
import type { Subscriptions } from "./subscriptions.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Question } from "./conversations/questions.ts";

/** The state that a connection has negotiated with its client. Requests read it, and a few methods change it. */
export interface Peer {
  /** The revision that `initialize` negotiated. */
  negotiatedVersion: string | undefined;
  /** What the client declared in its handshake. */
  capabilities: ClientCapabilities;
  /** The lowest level of the log messages that the client wants. Default: all. */
  logLevel: LogLevel | undefined;
  /** Resources that the client watches, each with the caller that subscribed to it. */
  readonly watched: Map<string, Caller>;
  readonly questions: ClientQuestions;
  readonly subscriptions: Subscriptions;
}

/** One request that is being served: its connection, its caller, and how to reach the client before the answer. */
export interface ServedRequest {
  readonly mcp: Mcp;
  readonly peer: Peer;
  readonly caller: Caller;
  readonly traceId: string;
  /** Ends when the client cancels or disconnects. */
  readonly life: Lifeline;
  /** Sends a message that belongs to the request, before its answer. */
  readonly send: (message: JsonRpcMessage) => void;
  /** Whether messages can be sent to the client before the answer. */
  readonly canStream: boolean;
  readonly closeStream: () => void;
  /** Ends the client's connection when it may not see any more what it subscribed to. */
  readonly cut: (() => void) | undefined;
  /** Throws when the transport rejects the request. */
  readonly check: (() => void) | undefined;
}

/** A person or a model answers: that may take a while. */
const ANSWER_TIMEOUT_MS = 600_000;

export interface AskedFor {
  /** Sends the question along with the request that it belongs to. */
  readonly send: (message: JsonRpcRequest | JsonRpcNotification) => void;
  /** The life of that request. */
  readonly life: Lifeline;
}

/** Questions to the client of one connection, each a request of the server, and the client's answers to them. */
export class ClientQuestions {
  /** By id as text: some clients answer a numeric id with its digits as text. */
  readonly #open = new Map<string, (answer: JsonRpcResponse | OwlError) => void>();
  #nextId: number;

  constructor(firstId: number) {
    this.#nextId = firstId;
  }

  ask({ method, params }: Question, { send, life }: AskedFor): Promise<unknown> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const settle = (answer: JsonRpcResponse | OwlError): void => {
        this.#open.delete(String(id));
        clearTimeout(timer);
        unlink();
        if (answer instanceof OwlError) reject(answer);
        else if ("result" in answer) resolve(answer.result);
        else reject(new Error(answer.error.message));
      };
      const timer = setTimeout(() => {
        const reason = `no answer within ${ANSWER_TIMEOUT_MS / 1000} seconds`;
        send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason } });
        settle(new OwlError("execution_error", `the client gave ${reason} to "${method}"`));
      }, ANSWER_TIMEOUT_MS);
      this.#open.set(String(id), settle);
      let unlink = (): void => {};
      unlink = life.onEnd(() => settle(new OwlError("cancelled", "the request was cancelled")));
      if (!life.isOver) send({ jsonrpc: "2.0", id, method, params });
    });
  }

  /** Receives the client's answer. An answer to a question that is not open is ignored. */
  answer(response: JsonRpcResponse): void {
    this.#open.get(String(response.id))?.(response);
  }
}
