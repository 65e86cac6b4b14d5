import {
  isJSONRPCRequest,
  type JSONRPCMessage,
  type MessageExtraInfo,
  SUBSCRIPTION_ID_META_KEY,
  type Transport,
  type TransportSendOptions,
} from "@modelcontextprotocol/server";
import {
  isObject,
  isRequestId,
  type JsonRpcMessage,
  type JsonRpcNotification,
  type JsonRpcRequest,
  type JsonRpcResponse,
  type RequestId,
} from "./json-rpc.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Caller } from "../pipeline/caller.ts";
import type { Lifeline } from "../pipeline/lifeline.ts";
import type { RequestFacts } from "./peer-server.ts";
import { completeWireError, toWireError } from "./wire-error.ts";

/** One request under way: who asked, and where messages go that belong to it. */
export interface Delivery extends RequestFacts {
  /** Ends when the client will not read the answer any more. */
  readonly gone: Lifeline | undefined;
  /** Sends a message that belongs to this request before its answer. */
  readonly stream: (message: JsonRpcMessage) => void;
}

const RESOURCE_UPDATED = "notifications/resources/updated";

interface Pending {
  readonly delivery: Delivery;
  readonly clientId: RequestId;
  readonly resolve: (response: JsonRpcResponse | undefined) => void;
}

type Sees = (uri: string, caller: Caller) => boolean;

export interface PeerTransportOptions {
  readonly unrelated: (message: JsonRpcMessage) => void;
  readonly withStack: boolean;
  /** Whether a client that watches a resource may still know of it. */
  readonly sees?: Sees;
  /** The number of the first question to the client: answers to questions before it belong to nobody. */
  readonly firstQuestion?: number;
}

/**
 * Joins the SDK's message-wise server to doors that want one answer for one request. Every request gets an id of
 * our own, so that clients which share a server, or use an id twice, never meet.
 */
export class PeerTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage, extra?: MessageExtraInfo) => void;
  /** The revision that `initialize` settled on. */
  negotiatedVersion: string | undefined;

  readonly #unrelated: (message: JsonRpcMessage) => void;
  readonly #withStack: boolean;
  readonly #sees: Sees;
  readonly #pending = new Map<number, Pending>();
  readonly #byClientId = new Map<RequestId, number>();
  readonly #firstQuestion: number;
  #lastId = 0;
  #closed = false;

  constructor({ unrelated, withStack, sees = () => true, firstQuestion = 0 }: PeerTransportOptions) {
    this.#firstQuestion = firstQuestion;
    this.#unrelated = unrelated;
    this.#withStack = withStack;
    this.#sees = sees;
  }

  async start(): Promise<void> {}

  setProtocolVersion(version: string): void {
    this.negotiatedVersion = version;
  }

  get pendingCount(): number {
    return this.#pending.size;
  }

  factsOf(id: unknown): RequestFacts {
    const pending = typeof id === "number" ? this.#pending.get(id) : undefined;
    if (pending === undefined) throw new Error("the request is no longer open");
    return pending.delivery;
  }

  /** Resolves with the answer, or with nothing when the client cancelled the request. */
  request(message: JsonRpcRequest, delivery: Delivery): Promise<JsonRpcResponse | undefined> {
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      if (this.#closed) return resolve(stoppedAnswer(message.id, delivery));
      // What the SDK does not take for a request it drops without a word.
      if (!isJSONRPCRequest(message)) return resolve(this.#unreadable(message, delivery));
      this.#pending.set(id, { delivery: { ...delivery, requestId: message.id }, clientId: message.id, resolve });
      this.#byClientId.set(message.id, id);
      delivery.gone?.onEnd(() => this.#cancel(id, "the client is gone"));
      this.#deliver({ ...message, id });
    });
  }

  notify(message: JsonRpcNotification): void {
    if (message.method !== "notifications/cancelled") return this.#deliver(message);
    const { requestId, reason } = message.params ?? {};
    const id = isRequestId(requestId) ? this.#byClientId.get(requestId) : undefined;
    if (id !== undefined) this.#cancel(id, typeof reason === "string" ? reason : "cancelled by the client");
  }

  respond(message: JsonRpcResponse): void {
    const first = this.#firstQuestion;
    if (first === 0) return this.#deliver(message);
    if (typeof message.id === "number" && message.id >= first) this.#deliver({ ...message, id: message.id - first });
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (isAnswer(message)) return this.#answer(message);
    if (!isOurs(message)) return;
    const numbered = this.#firstQuestion === 0 ? message : renumbered(message, this.#firstQuestion);
    const related = options?.relatedRequestId;
    const pending = typeof related === "number" ? this.#pending.get(related) : undefined;
    if (!this.#mayHear(message, pending ?? this.#subscriptionOf(message))) return;
    if (pending !== undefined) pending.delivery.stream(numbered);
    else if (related === undefined) this.#unrelated(this.#withClientsSubscription(numbered));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const [id, { clientId, delivery }] of this.#pending) this.#settle(id, stoppedAnswer(clientId, delivery));
    this.onclose?.();
  }

  #unreadable({ id, method, params }: JsonRpcRequest, { caller, traceId }: Delivery): JsonRpcResponse {
    const meta = params?.["_meta"];
    const what = !isObject(meta)
      ? "_meta must be an object"
      : "progressToken" in meta && !isRequestId(meta["progressToken"])
        ? "_meta.progressToken must be a string or an integer"
        : "_meta has a reserved key with a value of the wrong type";
    const error = new OwlError("invalid_params", `invalid parameters for ${method}: ${what}`);
    const options = { version: caller.protocolVersion, traceId, withStack: this.#withStack };
    return { jsonrpc: "2.0", id, error: toWireError(error, options) };
  }

  #cancel(id: number, reason: string): void {
    if (!this.#pending.has(id)) return;
    this.#deliver({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason } });
    this.#settle(id, undefined);
  }

  /** The policy may have changed since the client began to listen. */
  #mayHear(message: JsonRpcMessage, pending: Pending | undefined): boolean {
    if (pending === undefined || !("method" in message) || message.method !== RESOURCE_UPDATED) return true;
    const uri = message.params?.["uri"];
    return typeof uri !== "string" || this.#sees(uri, pending.delivery.caller);
  }

  #subscriptionOf(message: JsonRpcMessage): Pending | undefined {
    const meta = "params" in message ? message.params?.["_meta"] : undefined;
    return isObject(meta) ? this.#pending.get(Number(meta[SUBSCRIPTION_ID_META_KEY])) : undefined;
  }

  /** A subscription is known to the client by the id of the request that opened it, which is not the id that we gave. */
  #withClientsSubscription(message: JsonRpcMessage): JsonRpcMessage {
    const meta = "params" in message ? message.params?.["_meta"] : undefined;
    const pending = this.#subscriptionOf(message);
    if (pending === undefined || !isObject(meta) || !("params" in message)) return message;
    return {
      ...message,
      params: { ...message.params, _meta: { ...meta, [SUBSCRIPTION_ID_META_KEY]: pending.clientId } },
    };
  }

  #answer(message: JsonRpcResponse): void {
    const pending = typeof message.id === "number" ? this.#pending.get(message.id) : undefined;
    if (pending === undefined) return;
    const { clientId, delivery } = pending;
    if ("result" in message) return this.#settle(message.id, { ...message, id: clientId });
    const options = { version: delivery.caller.protocolVersion, traceId: delivery.traceId, withStack: this.#withStack };
    this.#settle(message.id, { jsonrpc: "2.0", id: clientId, error: completeWireError(message.error, options) });
  }

  #settle(id: RequestId | null, response: JsonRpcResponse | undefined): void {
    const pending = typeof id === "number" ? this.#pending.get(id) : undefined;
    if (pending === undefined || typeof id !== "number") return;
    this.#pending.delete(id);
    if (this.#byClientId.get(pending.clientId) === id) this.#byClientId.delete(pending.clientId);
    pending.resolve(response);
  }

  #deliver(message: JsonRpcMessage): void {
    if (isSdkMessage(message)) this.onmessage?.(message);
  }
}

/** What is said to a request that the server could not finish before it had to stop. */
export function stoppedAnswer(id: RequestId, { caller, traceId }: RequestFacts): JsonRpcResponse {
  const error = new OwlError("shutting_down", "the server stopped before the request was finished");
  return {
    jsonrpc: "2.0",
    id,
    error: toWireError(error, { version: caller.protocolVersion, traceId, withStack: false }),
  };
}

/** The SDK's messages and ours are the same on the wire; its types only say more than a door can know. */
function isAnswer(message: object): message is JsonRpcResponse {
  return "result" in message || "error" in message;
}

function isOurs(message: object): message is JsonRpcRequest | JsonRpcNotification {
  return "method" in message;
}

function isSdkMessage(message: JsonRpcMessage): message is JsonRpcMessage & JSONRPCMessage {
  return message.jsonrpc === "2.0";
}

/** The SDK counts its questions from zero. */
function renumbered(
  message: JsonRpcRequest | JsonRpcNotification,
  first: number,
): JsonRpcRequest | JsonRpcNotification {
  if ("id" in message) return typeof message.id === "number" ? { ...message, id: message.id + first } : message;
  const requestId = message.params?.["requestId"];
  if (message.method !== "notifications/cancelled" || typeof requestId !== "number") return message;
  return { ...message, params: { ...message.params, requestId: requestId + first } };
}
