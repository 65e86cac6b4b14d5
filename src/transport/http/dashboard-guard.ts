import type { IncomingMessage } from "node:http";
import { isLoopbackHost } from "../../config/value-rules.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { HostGuard } from "./guards.ts";
import { isProxied } from "./proxied-request.ts";
import type { RequestTarget } from "./request-target.ts";

export interface DashboardGuardOptions {
  readonly guard: HostGuard;
  /** Further names of this server, as a proxy in front shows them to browsers. */
  readonly allowedHosts: readonly string[];
  /** With auth off whoever has the link is the operator: that must not leave the machine. */
  readonly needsLoopback: boolean;
  readonly host: string;
}

/** Whether a request may speak to the page's server at all. No setting for other origins counts here. */
export class DashboardGuard {
  readonly #options: DashboardGuardOptions;

  constructor(options: DashboardGuardOptions) {
    this.#options = options;
  }

  /** For everything below `/dashboard`. @throws OwlError */
  check({ headers }: IncomingMessage, { authority }: RequestTarget): void {
    const { guard, needsLoopback, host } = this.#options;
    guard.check(authority, undefined);
    if (needsLoopback && (!isLoopbackHost(host) || isProxied(headers))) {
      throw new OwlError("forbidden", "with auth off the dashboard is for this machine alone", {
        facts: { reason: "auth_disabled" },
        hint: "turn auth.enabled on, or set http.host to localhost and open it without a proxy",
      });
    }
  }

  /** For the API: only pages of this very origin. Browsers say where a request comes from, and pages cannot lie about it. */
  checkOrigin({ headers, method }: IncomingMessage, { authority = "" }: RequestTarget): void {
    const { origin, "sec-fetch-site": site } = headers;
    if (origin !== undefined && !this.#isOwn(origin, authority)) throw foreign(origin);
    const isRead = method === "GET" || method === "HEAD";
    if (site === undefined || site === "same-origin" || (site === "none" && isRead)) return;
    throw foreign(origin ?? site);
  }

  #isOwn(origin: string, authority: string): boolean {
    const url = URL.canParse(origin) ? new URL(origin) : undefined;
    if (url === undefined || url.origin !== origin) return false;
    return url.host === authority.toLowerCase() || this.#options.allowedHosts.includes(url.hostname);
  }
}

function foreign(where: string): OwlError {
  return new OwlError("forbidden", `pages of ${JSON.stringify(where.slice(0, 128))} may not use the dashboard`, {
    facts: { reason: "foreign_origin" },
    hint: "open /dashboard on this server; behind a proxy, add its public name to http.allowedHosts",
  });
}
