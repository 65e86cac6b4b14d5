import { isIP } from "node:net";
import type { Config } from "../../config/schema.ts";
import { isLoopbackHost } from "../../config/value-rules.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { IncomingMessage, ServerResponse, IncomingHttpHeaders } from "node:http";
import { sendEmpty } from "./exchange-io.ts";

export interface GuardOptions {
  /** The address on which the server listens. */
  readonly host: string;
  readonly allowedHosts: readonly string[];
  readonly corsEnabled: boolean;
  readonly corsOrigins: readonly string[];
}

export function guardOf({ host, allowedHosts, cors }: Config["http"]): HostGuard {
  return new HostGuard({ host, allowedHosts, corsEnabled: cors.enabled, corsOrigins: cors.origins });
}

/**
 * Protects a server on the visitor's machine from pages of other sites. DNS rebinding shows in the `Host` header, a
 * foreign page in `Origin`.
 */
export class HostGuard {
  readonly #names: ReadonlySet<string>;
  readonly #isOpen: boolean;
  readonly #options: GuardOptions;

  constructor(options: GuardOptions) {
    const { host, allowedHosts } = options;
    this.#options = options;
    this.#names = new Set([host, ...allowedHosts].map((name) => name.toLowerCase()));
    // On an address other than loopback, clients may use host names that the server does not know, unless they are
    // configured.
    this.#isOpen = !isLoopbackHost(host) && allowedHosts.length === 0;
  }

  check(host: string | undefined, origin: string | undefined): void {
    if (host === undefined || !this.#isAllowedHost(hostnameOf(host))) {
      throw new OwlError(
        "forbidden",
        `the Host header ${JSON.stringify(host?.slice(0, 128) ?? null)} does not name this server`,
        {
          hint: "use the server's own address, or add the name to http.allowedHosts",
        },
      );
    }
    if (origin !== undefined && !this.isAllowedOrigin(origin) && !isSameOrigin(origin, host)) {
      throw new OwlError(
        "forbidden",
        `pages of the origin ${JSON.stringify(origin.slice(0, 128))} may not use this server`,
        {
          hint: "add the origin to http.cors.origins and enable http.cors",
        },
      );
    }
  }

  isAllowedOrigin(origin: string): boolean {
    const { corsEnabled, corsOrigins } = this.#options;
    if (!corsEnabled) return false;
    if (corsOrigins.length === 0) return isLoopbackOrigin(origin);
    return corsOrigins.includes("*") || corsOrigins.includes(origin.toLowerCase());
  }

  /**
   * DNS rebinding needs a host name of the attacker, so IP addresses are allowed on a server that does not listen on
   * loopback.
   */
  #isAllowedHost(name: string): boolean {
    if (this.#isOpen || this.#names.has(name) || isLoopbackHost(name)) return true;
    return isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0 && !isLoopbackHost(this.#options.host);
  }
}

function hostnameOf(host: string): string {
  return host.toLowerCase().replace(/:\d+$/, "");
}

function isSameOrigin(origin: string, host: string): boolean {
  return isLoopbackHost(hostnameOf(host)) && (origin === `http://${host}` || origin === `https://${host}`);
}

function isLoopbackOrigin(origin: string): boolean {
  const match = /^https?:\/\/(\[[^\]]+\]|[^/:]+)(?::\d+)?$/.exec(origin);
  return match !== null && isLoopbackHost(match[1] ?? "");
}

const REQUEST_HEADERS =
  "Content-Type, Content-Digest, Accept, Authorization, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, X-MCP-Client-ID, traceparent, tracestate";
const EXPOSED_HEADERS = "Mcp-Session-Id, WWW-Authenticate, X-Trace-Id";
const ONE_DAY_SECONDS = "86400";

/**
 * Adds the CORS headers with which a browser lets an allowed page read the response. Credentials are not allowed:
 * tokens are sent in a header.
 */
export function addCorsHeaders(request: IncomingMessage, response: ServerResponse, guard: HostGuard): void {
  const { origin } = request.headers;
  if (origin === undefined || !guard.isAllowedOrigin(origin)) return;
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", EXPOSED_HEADERS);
  response.setHeader("vary", "Origin");
}

/** Responds to a CORS preflight. Returns whether the request was one. */
export function answerPreflight(
  request: IncomingMessage,
  response: ServerResponse,
  allowedMethods: () => string,
): boolean {
  if (request.method !== "OPTIONS" || request.headers["access-control-request-method"] === undefined) return false;
  if (!response.hasHeader("access-control-allow-origin")) return false;
  const asked = request.headers["access-control-request-headers"];
  const custom =
    asked
      ?.split(",")
      .map((name) => name.trim())
      .filter((name) => /^mcp-param-[a-z0-9-]{1,64}$/i.test(name)) ?? [];
  sendEmpty(response, 204, {
    "access-control-allow-methods": `${allowedMethods()}, OPTIONS`,
    "access-control-allow-headers": [REQUEST_HEADERS, ...custom].join(", "),
    "access-control-max-age": ONE_DAY_SECONDS,
  });
  return true;
}

/**
 * Headers that proxies add. A request with one of them comes from a client behind a proxy, whatever the address of the
 * connection.
 */
const PROXY_HEADERS = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"] as const;

export function isProxied(headers: IncomingHttpHeaders): boolean {
  return PROXY_HEADERS.some((name) => headers[name] !== undefined);
}
