import { Slots } from "../collections/slots.ts";
import type { Caller } from "../pipeline/caller.ts";
import { LateConversation } from "./conversations/late.ts";
import { answerFastCall, type FastCall, type FastOptions, readFastCall, runFastCall } from "./fast-call.ts";
import {
  isRequestId,
  type JsonRpcMessage,
  type JsonRpcNotification,
  type JsonRpcRequest,
  type JsonRpcResponse,
  type RequestId,
} from "./json-rpc.ts";
import { refuseListening } from "./listen-guard.ts";
import type { Mcp } from "./mcp.ts";
import { PeerTransport, stoppedAnswer } from "./peer-transport.ts";
import type { Conversation } from "../pipeline/call.ts";
import { Lifeline } from "../pipeline/lifeline.ts";
import { traceIdIn } from "./trace-id.ts";
import { assertNegotiable, PLAIN_VERSION } from "./versions.ts";
import { toWireError } from "./wire-error.ts";
import { OwlError, toOwlError } from "../errors/owl-error.ts";

export interface ConnectionOptions {
  readonly mcp: Mcp;
  /** Ties an SDK server to the transport. */
  readonly attach: (transport: PeerTransport) => Promise<{ close(): Promise<void> }>;
  /** Sends what belongs to no request: changes, and questions of the server's own. */
  readonly unrelated?: (message: JsonRpcMessage) => void;
  /** Off only in the test that holds the fast path against the SDK's. */
  readonly fastPath?: boolean;
  /** The number of the first question to the client. Default: 0. */
  readonly firstQuestion?: number;
}

/** What the door says about one request. */
export interface Incoming {
  readonly caller: Caller;
  readonly traceId: string;
  readonly stream: (message: JsonRpcMessage) => void;
  readonly closeStream?: () => void;
  /** Ends when the client will not read the answer any more. */
  readonly gone: Lifeline | undefined;
}

/** One client's line to the server: a session, a stdio pipe, an event stream, or the shared line of clients without any. */
export class Connection {
  readonly #mcp: Mcp;
  readonly #transport: PeerTransport;
  /** Ids are the clients' own: on a shared line many calls may have the same. */
  readonly #fast = new Slots<{ readonly life: Lifeline; readonly id: RequestId }>();
  readonly #fastPath: boolean;
  #closing = false;
  #handshake: { readonly caller: Caller; readonly atMs: number } | undefined;
  readonly #engine: Promise<{ close(): Promise<void> }>;

  constructor({ mcp, attach, unrelated = () => undefined, fastPath = true, firstQuestion }: ConnectionOptions) {
    this.#mcp = mcp;
    this.#fastPath = fastPath;
    this.#transport = new PeerTransport({
      unrelated,
      withStack: mcp.withStack,
      ...(firstQuestion !== undefined && { firstQuestion }),
      sees: (uri, caller) => mcp.pipeline.view.sees(uri, caller),
    });
    this.#engine = attach(this.#transport);
  }

  /** The revision that `initialize` settled on; before that, clients are plain. */
  get version(): string {
    return this.#transport.negotiatedVersion ?? PLAIN_VERSION;
  }

  get isInitialized(): boolean {
    return this.#transport.negotiatedVersion !== undefined;
  }

  get openRequests(): number {
    return this.#transport.pendingCount + this.#fast.size;
  }

  /** Resolves with the answer, or with nothing when the client cancelled. Never rejects. */
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

  notify(message: JsonRpcNotification): void {
    const requestId = message.method === "notifications/cancelled" ? message.params?.["requestId"] : undefined;
    if (isRequestId(requestId)) this.#endFast((id) => id === requestId);
    this.#transport.notify(message);
  }

  respond(message: JsonRpcResponse): void {
    this.#transport.respond(message);
  }

  async close(): Promise<void> {
    if (!this.#closing) this.#tellEnd();
    this.#closing = true;
    this.#endFast(() => true);
    const engine = await this.#engine;
    await engine.close();
    await this.#transport.close();
  }

  async #serve(message: JsonRpcRequest, incoming: Incoming): Promise<JsonRpcResponse | undefined> {
    const { caller, traceId } = incoming;
    try {
      if (message.method === "initialize") this.#assertCanInitialize(message);
    } catch (thrown) {
      const error = toWireError(toOwlError(thrown), {
        version: caller.protocolVersion,
        traceId,
        withStack: this.#mcp.withStack,
      });
      return { jsonrpc: "2.0", id: message.id, error };
    }
    const refusal = refuseListening(this.#mcp, message, incoming);
    if (refusal !== undefined) return refusal;
    const call = this.#fastPath ? readFastCall(message, caller.protocolVersion) : undefined;
    if (call !== undefined) return this.#runFast(message, call, incoming);
    await this.#engine;
    return this.#transport.request(message, incoming);
  }

  #tellEnd(): void {
    if (this.#handshake === undefined || !this.isInitialized) return;
    const { caller, atMs } = this.#handshake;
    this.#mcp.watch?.sessionEnded?.({ caller, version: this.version, durationMs: performance.now() - atMs });
  }

  #assertCanInitialize({ params }: JsonRpcRequest): void {
    assertNegotiable(params?.["protocolVersion"]);
    if (!this.isInitialized) return;
    throw new OwlError("invalid_request", "this connection is initialized already", {
      hint: "open a new connection to start anew",
    });
  }

  #endFast(isMeant: (id: RequestId) => boolean): void {
    for (const { life, id } of this.#fast) if (isMeant(id)) life.end();
  }

  /** Runs the call at once; if it wants to talk to the client before its end, the SDK takes it over with the call under way. */
  async #runFast(message: JsonRpcRequest, call: FastCall, incoming: Incoming): Promise<JsonRpcResponse | undefined> {
    const life = new Lifeline();
    let adopted: Promise<JsonRpcResponse | undefined> | undefined;
    let running: Promise<Record<string, unknown>> = Promise.resolve({});
    const late = new LateConversation(() => {
      const adopt = (conversation: Conversation): Promise<Record<string, unknown>> => {
        late.attach(conversation);
        return running;
      };
      adopted = this.#transport.request(message, { ...incoming, adopt });
    });
    const { caller, traceId } = incoming;
    const options: FastOptions = {
      mcp: this.#mcp,
      caller,
      traceId,
      requestId: message.id,
      life,
      conversation: late.conversation,
    };
    const unlink = incoming.gone?.onEnd(() => life.end());
    const slot = this.#fast.add({ life, id: message.id });
    try {
      running = runFastCall(call, options);
      const answer = await answerFastCall(message, running, options);
      if (adopted !== undefined) return await adopted;
      if (!life.isOver) return answer;
      return this.#closing ? stoppedAnswer(message.id, incoming) : undefined;
    } finally {
      unlink?.();
      this.#fast.delete(slot);
    }
  }
}
