import { isIPv6, type Socket } from "node:net";
import type { Config } from "../../config/schema.ts";
import { isLoopbackHost } from "../../config/value-rules.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { ClientAddresses } from "./client-address.ts";
import type { IncomingMessage, ServerResponse } from "node:http";
import { ANONYMOUS, isOperator, type Principal } from "../../auth/principal.ts";
import { OwlError } from "../../errors/owl-error.ts";
import { onClose } from "./exchange-io.ts";

type Limits = Pick<Config["http"], "maxConnections" | "maxConnectionsPerAddress" | "trustedProxies">;

interface Connection {
  readonly socket: Socket;
  readonly key: string;
  readonly address: string;
  /** The number of requests in flight on the connection. */
  requests: number;
  /** Whether the connection is one of those reserved for health checks and operators. */
  isReserved: boolean;
  isRemoved: boolean;
}

const RESERVED_SHARE = 0.05;
const WARNING_EVERY_MS = 60_000;

/** The number of `maxConnections` that are reserved for `/health` and operators. */
export function reservedConnections(maxConnections: number): number {
  return maxConnections === 1 ? 0 : Math.ceil(maxConnections * RESERVED_SHARE);
}

/**
 * The TCP connections of one server. At the limit, a new connection replaces the one that has waited longest for a
 * request, so a client that connects and sends nothing does not keep other clients out.
 */
export class ConnectionLimits {
  readonly #limits: Limits;
  readonly #logger: Logger;
  readonly #all = new Map<string, Connection>();
  readonly #byAddress = new Map<string, Set<Connection>>();
  /** Connections without any request yet. The oldest is first, as in `#idle`. */
  readonly #unused = new Set<Connection>();
  /** Connections without a request in flight. */
  readonly #idle = new Set<Connection>();
  readonly #addresses: ClientAddresses;
  #reserved = 0;
  #warnedAtMs = -Infinity;

  constructor(limits: Limits, logger: Logger) {
    this.#limits = limits;
    this.#addresses = new ClientAddresses(limits.trustedProxies);
    this.#logger = logger;
  }

  /** Counts a new connection. When the limit is reached and no other connection can be closed, closes the new one. */
  add(socket: Socket, { isUnix = false }: { readonly isUnix?: boolean } = {}): void {
    const remoteAddress = isUnix ? UNIX : socket.remoteAddress;
    // The client has already closed the connection.
    if (remoteAddress === undefined) return void socket.destroy();
    const address = addressKey(remoteAddress);
    if (!this.#makeRoom(address, this.#isShared(remoteAddress, address))) {
      this.#warn(address);
      socket.destroy();
      return;
    }
    const key = isUnix ? unixKey(socket) : connectionKey(socket);
    // The same address and port pairs: the earlier connection has ended, although its `close` event has not fired yet.
    const earlier = this.#all.get(key);
    if (earlier !== undefined) this.#remove(earlier);
    const connection: Connection = { socket, key, address, requests: 0, isReserved: this.#isFull(), isRemoved: false };
    if (connection.isReserved) this.#reserved += 1;
    this.#all.set(key, connection);
    this.#unused.add(connection);
    const sameAddress = this.#byAddress.get(address) ?? new Set();
    this.#byAddress.set(address, sameAddress.add(connection));
    socket.once("close", () => this.#remove(connection));
  }

  /** All clients behind a proxy, and all clients on this machine, share one address. */
  #isShared(remoteAddress: string, address: string): boolean {
    return address === UNIX || isLoopbackHost(address) || this.#addresses.isTrustedProxy(remoteAddress);
  }

  /** Counts a request. Returns whether it arrived on a connection reserved for health checks and operators. */
  begin(socket: Socket): { readonly isReserved: boolean; readonly end: () => void } {
    const connection = this.#all.get(unixKeys.get(socket) ?? connectionKey(socket));
    if (connection === undefined) return { isReserved: false, end: () => undefined };
    connection.requests += 1;
    this.#unused.delete(connection);
    this.#idle.delete(connection);
    if (connection.isReserved && !this.#isFull()) {
      connection.isReserved = false;
      this.#reserved -= 1;
    }
    const end = (): void => {
      connection.requests -= 1;
      if (connection.requests === 0 && !connection.isRemoved) this.#idle.add(connection);
    };
    return { isReserved: connection.isReserved, end };
  }

  /** Whether all connections except the reserved ones are in use. */
  #isFull(): boolean {
    const { maxConnections } = this.#limits;
    return this.#all.size - this.#reserved >= maxConnections - reservedConnections(maxConnections);
  }

  /** Returns false when the new connection cannot be accepted. */
  #makeRoom(address: string, isShared: boolean): boolean {
    const { maxConnections, maxConnectionsPerAddress } = this.#limits;
    const sameAddress = this.#byAddress.get(address);
    if (sameAddress !== undefined && sameAddress.size >= maxConnectionsPerAddress && !isShared)
      return this.#close(oldestWaiting(sameAddress));
    if (!this.#isFull()) return true;
    return this.#close(first(this.#unused) ?? first(this.#idle)) || this.#all.size < maxConnections;
  }

  #close(connection: Connection | undefined): boolean {
    if (connection === undefined) return false;
    this.#warn(connection.address);
    this.#remove(connection);
    connection.socket.destroy();
    return true;
  }

  #remove(connection: Connection): void {
    if (connection.isRemoved) return;
    connection.isRemoved = true;
    if (this.#all.get(connection.key) === connection) this.#all.delete(connection.key);
    this.#unused.delete(connection);
    this.#idle.delete(connection);
    if (connection.isReserved) this.#reserved -= 1;
    const sameAddress = this.#byAddress.get(connection.address);
    sameAddress?.delete(connection);
    if (sameAddress?.size === 0) this.#byAddress.delete(connection.address);
  }

  #warn(address: string): void {
    const nowMs = performance.now();
    if (nowMs - this.#warnedAtMs < WARNING_EVERY_MS) return;
    this.#warnedAtMs = nowMs;
    const { maxConnections: limit, maxConnectionsPerAddress: address_limit } = this.#limits;
    const facts = { address, open: this.#all.size, limit, address_limit };
    this.#logger.warning("connection limit reached, closing a connection", facts);
  }
}

function oldestWaiting(connections: ReadonlySet<Connection>): Connection | undefined {
  for (const connection of connections) if (connection.requests === 0) return connection;
  return undefined;
}

function first<T>(values: ReadonlySet<T>): T | undefined {
  const [value] = values;
  return value;
}

/** The same key for a TCP connection and the TLS connection on it. */
function connectionKey({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

/** Connections over a Unix socket have no addresses, so they are numbered. */
const UNIX = "unix";
const unixKeys = new WeakMap<Socket, string>();
let unixCount = 0;

function unixKey(socket: Socket): string {
  const key = `${UNIX} ${(unixCount += 1)}`;
  unixKeys.set(socket, key);
  return key;
}

/** One client commonly has a whole /64 of IPv6 addresses, so a /64 counts as one address. */
function addressKey(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address) || isLoopbackHost(address)) return address;
  const [head = "", tail] = address.replace(/%.*$/, "").split("::");
  const groups = head === "" ? [] : head.split(":");
  const rest = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - groups.length - rest.length }, () => "0");
  return `${[...groups, ...zeros, ...rest].slice(0, 4).join(":")}::/64`;
}

interface OpenedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Whether all connections except those for health checks and operators are in use. */
  readonly isReserved: boolean;
}

/** The connections on which each client has a request or a stream open. */
export class ClientConnections {
  readonly #limit: number;
  readonly #byClient = new Map<string, Map<Socket, number>>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Counts the connection until the response is closed. Without auth only the limit per address applies. */
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
