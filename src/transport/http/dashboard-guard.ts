import type { IncomingMessage } from "node:http";
import { isLoopbackHost } from "../../config/value-rules.ts";
import { OwlError } from "../../errors/owl-error.ts";
import { type HostGuard, isProxied } from "./guards.ts";
import type { RequestTarget } from "./request-target.ts";

export interface DashboardGuardOptions {
  readonly guard: HostGuard;
  /** Further host names of this server, such as the public name of a proxy. */
  readonly allowedHosts: readonly string[];
  /** With auth off, any user with the link is the operator, so only this machine may connect. */
  readonly needsLoopback: boolean;
  readonly host: string;
}

/** Whether a request may use the dashboard. CORS settings do not apply to it. */
export class DashboardGuard {
  readonly #options: DashboardGuardOptions;

  constructor(options: DashboardGuardOptions) {
    this.#options = options;
  }

  /**
   * Checks a request below `/dashboard`.
   * @throws OwlError
   */
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

  /**
   * Checks a request to the API: only pages of the same origin may use it. Browsers set these headers, and pages cannot
   * forge them.
   */
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

/** Headers for everything below `/dashboard`: no caching, no framing, no content sniffing. */
export const DASHBOARD_HEADERS = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox",
} as const;

/** The page may load resources only from this server. */
export const PAGE_POLICY: string = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

/** The page uses none of these browser features. It does use notifications. */
export const PERMISSIONS = "camera=(), geolocation=(), microphone=(), payment=(), usb=()";

export const SESSION_COOKIE = "owlclaw_dashboard";

/**
 * The value of the session cookie. With two cookies of this name another site may have set one, so neither is accepted.
 */
export function sessionKeyOf(cookie: string | undefined): string | undefined {
  const values = (cookie ?? "")
    .split(/[;,]/)
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${SESSION_COOKIE}=`))
    .map((pair) => pair.slice(SESSION_COOKIE.length + 1));
  const [value] = values;
  return values.length === 1 && value !== undefined && /^[\w-]{43}$/.test(value) ? value : undefined;
}

export function sessionCookie(key: string, isSecure: boolean): string {
  return `${SESSION_COOKIE}=${key}; Path=/dashboard; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
}

export function endedCookie(isSecure: boolean): string {
  return `${sessionCookie("", isSecure)}; Max-Age=0`;
}
