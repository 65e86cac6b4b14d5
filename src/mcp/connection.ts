import type { Change } from "../capability/registry.ts";
import { Slots } from "../platform/slots.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Caller } from "../call/call.ts";
import { Lifeline } from "../call/lifeline.ts";
import { type Peer, ClientQuestions } from "./peer.ts";
import {
  isRequestId,
  type JsonRpcMessage,
  type JsonRpcNotification,
  type JsonRpcRequest,
  type JsonRpcResponse,
  type RequestId,
} from "./json-rpc.ts";
import type { Mcp } from "./mcp.ts";
import { serve } from "./request-server.ts";
import { notificationOf, Subscriptions } from "./subscriptions.ts";
import { traceIdIn } from "./request-observer.ts";
import { assertNegotiable, isModern, PLAIN_VERSION } from "./versions.ts";
import { errorAnswer } from "./wire-error.ts";

export interface ConnectionOptions {
  readonly mcp: Mcp;
  /** Sends changes, which belong to no request. Without it, clients get only the changes that they subscribed to. */
  readonly unrelated?: (message: JsonRpcMessage) => void;
  /** The number of the first question to the client. Default: 0. */
  readonly firstQuestion?: number;
}

/** What a transport passes with one request. */
export interface Incoming {
  readonly caller: Caller;
  readonly traceId: string;
  readonly stream: (message: JsonRpcMessage) => void;
  readonly closeStream?: () => void;
  /** Ends when the client will not read the answer any more. */
  readonly gone: Lifeline | undefined;
  /** Whether the client accepts messages before the answer. Default: true. */
  readonly canStream?: boolean;
  /** Ends the client's connection. */
  readonly cut?: () => void;
  /** Throws when the transport rejects the request. */
  readonly check?: () => void;
}

interface OpenRequest {
  readonly life: Lifeline;
  readonly id: RequestId;
}

/**
 * One client's connection: a session, a stdio pipe, an event stream, or the shared connection of clients without any of
 * these.
 */
export class Connection {
  readonly #mcp: Mcp;
  readonly #unrelated: ((message: JsonRpcMessage) => void) | undefined;
  readonly #peer: Peer;
  /** Clients choose the ids: on a shared connection many requests may have the same one. */
  readonly #open = new Slots<OpenRequest>();
  readonly #unsubscribe: () => void;
  #handshake: { readonly caller: Caller; readonly atMs: number } | undefined;
  /** Whether the client gets changes without a subscription, as in older revisions. */
  #hearsChanges = false;
  #closing = false;

  constructor({ mcp, unrelated, firstQuestion = 0 }: ConnectionOptions) {
    this.#mcp = mcp;
    this.#unrelated = unrelated;
    this.#peer = {
      negotiatedVersion: undefined,
      capabilities: {},
      logLevel: undefined,
      watched: new Map(),
      questions: new ClientQuestions(firstQuestion),
      subscriptions: new Subscriptions((uri, caller) => mcp.pipeline.view.sees(uri, caller)),
    };
    this.#unsubscribe = mcp.changes.subscribe((change) => this.#tell(change));
  }

  /** The revision that `initialize` negotiated; before that, the one of clients without a handshake. */
  get version(): string {
    return this.#peer.negotiatedVersion ?? PLAIN_VERSION;
  }

  get isInitialized(): boolean {
    return this.#peer.negotiatedVersion !== undefined;
  }

  get openRequests(): number {
    return this.#open.size;
  }

  /** Resolves with the answer, or with `undefined` when the client cancelled. Never rejects. */
  async request(message: JsonRpcRequest, arrived: Incoming): Promise<JsonRpcResponse | undefined> {
    const traceId = traceIdIn(message.params);
    const incoming = traceId === undefined ? arrived : { ...arrived, traceId };
    const { watch, tracing } = this.#mcp;
    if (message.method === "initialize") this.#handshake ??= { caller: incoming.caller, atMs: performance.now() };
    const onAnswer = watch?.begin(message, incoming);
    const answer =
      tracing === undefined
        ? await this.#serve(message, incoming)
        : await tracing.serve(message, incoming, () => this.#serve(message, incoming));
    onAnswer?.(answer);
    return answer;
  }

  notify({ method, params }: JsonRpcNotification): void {
    const requestId = method === "notifications/cancelled" ? params?.["requestId"] : undefined;
    if (!isRequestId(requestId)) return;
    for (const { life, id } of this.#open) if (id === requestId) life.end();
  }

  respond(message: JsonRpcResponse): void {
    this.#peer.questions.answer(message);
  }

  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    this.#tellEnd();
    this.#unsubscribe();
    this.#peer.subscriptions.close();
    for (const { life } of this.#open) life.end();
  }

  async #serve(message: JsonRpcRequest, incoming: Incoming): Promise<JsonRpcResponse | undefined> {
    const { caller, traceId, gone, stream, closeStream = noop, canStream = true, cut, check } = incoming;
    if (this.#closing) return stoppedAnswer(message.id, incoming);
    this.#hearsChanges = !isModern(caller.protocolVersion);
    const life = new Lifeline();
    const unlink = gone?.onEnd(() => life.end());
    const slot = this.#open.add({ life, id: message.id });
    let isOpen = true;
    try {
      const answer = await serve(message, {
        mcp: this.#mcp,
        peer: this.#peer,
        caller,
        traceId,
        life,
        canStream,
        closeStream,
        cut,
        send: (sent) => void (isOpen && !life.isOver && stream(sent)),
        check: message.method === "initialize" ? () => this.#checkHandshake(message, incoming) : check,
      });
      if (!life.isOver) return answer;
      if (!this.#closing) return undefined;
      // A subscription ends with a result, not an error, when the server stops.
      return message.method === "subscriptions/listen" ? answer : stoppedAnswer(message.id, incoming);
    } finally {
      isOpen = false;
      unlink?.();
      this.#open.delete(slot);
    }
  }

  #checkHandshake({ params }: JsonRpcRequest, { caller, check }: Incoming): void {
    check?.();
    if (isModern(caller.protocolVersion)) return;
    assertNegotiable(params?.["protocolVersion"]);
    if (!this.isInitialized) return;
    throw new OwlError("invalid_request", "this connection is initialized already", {
      hint: "open a new connection to start anew",
    });
  }

  #tell(change: Change): void {
    this.#peer.subscriptions.tell(change);
    if (this.#unrelated === undefined || !this.#hearsChanges || !this.#mayHear(change)) return;
    const { method, params } = notificationOf(change);
    this.#unrelated({ jsonrpc: "2.0", method, ...(change.kind === "resource" && { params }) });
  }

  /**
   * Whether the client gets the change: every change of a list, and those of resources that it watches and may still
   * see.
   */
  #mayHear(change: Change): boolean {
    if (change.kind === "list") return true;
    const caller = this.#peer.watched.get(change.uri);
    return caller !== undefined && this.#mcp.pipeline.view.sees(change.uri, caller);
  }

  #tellEnd(): void {
    if (this.#handshake === undefined || !this.isInitialized) return;
    const { caller, atMs } = this.#handshake;
    this.#mcp.watch?.sessionEnded?.({ caller, version: this.version, durationMs: performance.now() - atMs });
  }
}

/** The answer to a request that the server could not finish before it stopped. */
function stoppedAnswer(id: RequestId, { caller, traceId }: Pick<Incoming, "caller" | "traceId">): JsonRpcResponse {
  const error = new OwlError("shutting_down", "the server stopped before the request was finished");
  return errorAnswer(id, error, { version: caller.protocolVersion, traceId, withStack: false });
}

function noop(): void {}
