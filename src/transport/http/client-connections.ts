import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { ANONYMOUS, isOperator, type Principal } from "../../auth/principal.ts";
import { OwlError } from "../../errors/owl-error.ts";
import { onClose } from "./exchange-io.ts";

interface OpenedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Whether all connections are taken but those for health checks and operators. */
  readonly isReserved: boolean;
}

/** The connections on which each client has a request or a stream open. */
export class ClientConnections {
  readonly #limit: number;
  readonly #byClient = new Map<string, Map<Socket, number>>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Counts the connection until the response is closed. Without auth only the limit for each address applies. */
  open(principal: Principal, { request: { socket }, response, isReserved }: OpenedRequest): void {
    if (isOperator(principal)) return;
    if (isReserved) throw noConnectionLeft();
    if (principal === ANONYMOUS) return;
    const connections = this.#byClient.get(principal.id) ?? new Map<Socket, number>();
    const requests = connections.get(socket) ?? 0;
    if (requests === 0 && connections.size >= this.#limit) throw tooMany(this.#limit);
    this.#byClient.set(principal.id, connections.set(socket, requests + 1));
    onClose(response, () => this.#close(principal.id, socket));
  }

  #close(client: string, socket: Socket): void {
    const connections = this.#byClient.get(client);
    const requests = connections?.get(socket) ?? 0;
    if (requests > 1) connections?.set(socket, requests - 1);
    else connections?.delete(socket);
    if (connections?.size === 0) this.#byClient.delete(client);
  }
}

function tooMany(limit: number): OwlError {
  return new OwlError("resource_limit", `this client has requests or streams open on ${limit} connections already`, {
    facts: { limit, reason: "connections" },
    hint: "close event streams that you do not read, or raise http.maxConnectionsPerClient",
  });
}

export function noConnectionLeft(): OwlError {
  return new OwlError("overloaded", "all connections are in use but those for health checks and operators", {
    facts: { reason: "connections" },
    hint: "try again in a moment; the operator can raise http.maxConnections",
  });
}
