import type { SessionState } from "../../cluster/session-state.ts";
import type { JsonRpcRequest, JsonRpcResponse } from "../../mcp/json-rpc.ts";

const MAX_WATCHED = 1000;

/** What a session has settled with its client, so that another server can go on with it. */
export class SessionMemory {
  readonly #ownerId: string;
  #initialize: Readonly<Record<string, unknown>> = {};
  #logLevel: string | undefined;
  readonly #watched = new Set<string>();

  constructor(ownerId: string) {
    this.#ownerId = ownerId;
  }

  state(): SessionState {
    const logLevel = this.#logLevel;
    return {
      ownerId: this.#ownerId,
      initialize: this.#initialize,
      ...(logLevel !== undefined && { logLevel }),
      watched: [...this.#watched].slice(0, MAX_WATCHED),
    };
  }

  /** Says what a request has changed, now that its answer is known. */
  note({ method, params = {} }: JsonRpcRequest, answer: JsonRpcResponse | undefined): "began" | "changed" | undefined {
    if (answer === undefined || !("result" in answer)) return undefined;
    const { level, uri } = params;
    if (method === "initialize") this.#initialize = params;
    else if (method === "logging/setLevel") this.#logLevel = String(level);
    else if (method === "resources/subscribe") this.#watched.add(String(uri));
    else if (method === "resources/unsubscribe") this.#watched.delete(String(uri));
    else return undefined;
    return method === "initialize" ? "began" : "changed";
  }
}

/** The requests that bring a new connection to the state of an old one. */
export function requestsFor({ initialize, logLevel, watched }: SessionState): readonly JsonRpcRequest[] {
  const request = (method: string, params: Readonly<Record<string, unknown>>): JsonRpcRequest => ({
    jsonrpc: "2.0",
    id: 0,
    method,
    params,
  });
  return [
    request("initialize", initialize),
    ...(logLevel === undefined ? [] : [request("logging/setLevel", { level: logLevel })]),
    ...watched.map((uri) => request("resources/subscribe", { uri })),
  ];
}
