import { SUBSCRIPTION_ID_META_KEY, type SubscriptionFilter, specTypeSchemas } from "@modelcontextprotocol/server";
import type { Change } from "../capability/registry.ts";
import { Slots } from "../platform/slots.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Caller } from "../call/call.ts";
import type { Lifeline } from "../call/lifeline.ts";
import { type JsonRpcNotification, type RequestId, isObject, type JsonRpcRequest } from "./json-rpc.ts";
import type { ServedRequest } from "./peer.ts";

const MAX_SUBSCRIPTIONS = 1024;

export interface Subscriber {
  /** The id of the request to listen, which names the subscription in each message. */
  readonly id: RequestId;
  readonly caller: Caller;
  readonly life: Lifeline;
  readonly send: (message: JsonRpcNotification) => void;
  /** Ends the client's connection; absent when the connection carries more than this subscription. */
  readonly cut: (() => void) | undefined;
}

interface Open extends Subscriber {
  readonly filter: SubscriptionFilter;
  readonly end: () => void;
}

type Sees = (uri: string, caller: Caller) => boolean;

/** The subscriptions of clients of the revisions without handshake, on one connection. */
export class Subscriptions {
  readonly #open = new Slots<Open>();
  readonly #sees: Sees;

  /** `sees` says whether a client may still see a resource: the policy may have changed since it subscribed. */
  constructor(sees: Sees) {
    this.#sees = sees;
  }

  /** Resolves when the subscription has ended, with the result of its request. */
  listen(requested: SubscriptionFilter, subscriber: Subscriber): Promise<Record<string, unknown>> {
    if (this.#open.size >= MAX_SUBSCRIPTIONS)
      throw new OwlError("overloaded", `all ${MAX_SUBSCRIPTIONS} subscriptions of the connection are in use`, {
        facts: { limit: MAX_SUBSCRIPTIONS },
      });
    const filter = honored(requested);
    const { id, life, send } = subscriber;
    send(stamped(id, "notifications/subscriptions/acknowledged", { notifications: filter }));
    const result = { _meta: { [SUBSCRIPTION_ID_META_KEY]: id } };
    if (Object.keys(filter).length === 0) return Promise.resolve(result);
    return new Promise((resolve) => {
      const unlink = life.onEnd(() => end());
      const slot = this.#open.add({ ...subscriber, filter, end: () => end() });
      let isOpen = true;
      const end = (): void => {
        if (!isOpen) return;
        isOpen = false;
        unlink();
        this.#open.delete(slot);
        resolve(result);
      };
    });
  }

  tell(change: Change): void {
    for (const { id, caller, filter, send, cut } of this.#open) {
      const hidden = filter.resourceSubscriptions?.filter((uri) => !this.#sees(uri, caller)) ?? [];
      if (hidden.length > 0 && cut !== undefined) cut();
      else if (accepts(filter, change) && !(change.kind === "resource" && hidden.includes(change.uri))) {
        const { method, params } = notificationOf(change);
        send(stamped(id, method, params));
      }
    }
  }

  /** Ends all of them with a result. */
  close(): void {
    for (const { end } of this.#open) end();
  }
}

/** A change as a notification to clients. */
export function notificationOf(change: Change): {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
} {
  if (change.kind === "resource") return { method: "notifications/resources/updated", params: { uri: change.uri } };
  return { method: `notifications/${change.list}/list_changed`, params: {} };
}

/** The part of the filter that is served: all kinds that the server knows and the client wants. */
function honored({
  toolsListChanged,
  promptsListChanged,
  resourcesListChanged,
  resourceSubscriptions = [],
}: SubscriptionFilter): SubscriptionFilter {
  return {
    ...(toolsListChanged === true && { toolsListChanged }),
    ...(promptsListChanged === true && { promptsListChanged }),
    ...(resourcesListChanged === true && { resourcesListChanged }),
    ...(resourceSubscriptions.length > 0 && { resourceSubscriptions }),
  };
}

function accepts(filter: SubscriptionFilter, change: Change): boolean {
  if (change.kind === "resource") return filter.resourceSubscriptions?.includes(change.uri) === true;
  if (change.list === "tools") return filter.toolsListChanged === true;
  return change.list === "prompts" ? filter.promptsListChanged === true : filter.resourcesListChanged === true;
}

function stamped(id: RequestId, method: string, params: Readonly<Record<string, unknown>>): JsonRpcNotification {
  return { jsonrpc: "2.0", method, params: { ...params, _meta: { [SUBSCRIPTION_ID_META_KEY]: id } } };
}

/** `subscriptions/listen`. A caller cannot subscribe to a resource that it may not read. */
export async function listen(
  { mcp, peer, caller, life, send, cut }: ServedRequest,
  message: JsonRpcRequest,
): Promise<Record<string, unknown>> {
  for (const uri of watchedUris(message.params)) mcp.pipeline.assertOpenToWatch(uri, caller);
  const outcome = specTypeSchemas.SubscriptionsListenRequest["~standard"].validate(message);
  if (outcome.issues !== undefined)
    throw new OwlError(
      "invalid_params",
      "Invalid params: 'notifications' is required and must be a valid SubscriptionFilter",
    );
  const { notifications: filter } = outcome.value.params;
  return peer.subscriptions.listen(filter, { id: message.id, caller, life, send, cut });
}

function watchedUris(params: JsonRpcRequest["params"]): readonly string[] {
  const filter = isObject(params?.["notifications"]) ? params["notifications"] : params;
  const uris = filter?.["resourceSubscriptions"];
  return Array.isArray(uris) ? uris.filter((uri) => typeof uri === "string") : [];
}
