import { isIP } from "node:net";
import type { Config } from "../../config/schema.ts";
import { isLoopbackHost } from "../../config/value-rules.ts";
import { OwlError } from "../../errors/owl-error.ts";

export interface GuardOptions {
  /** Where the server listens. */
  readonly host: string;
  readonly allowedHosts: readonly string[];
  readonly corsEnabled: boolean;
  readonly corsOrigins: readonly string[];
}

export function guardOf({ host, allowedHosts, cors }: Config["http"]): HostGuard {
  return new HostGuard({ host, allowedHosts, corsEnabled: cors.enabled, corsOrigins: cors.origins });
}

/**
 * Stops pages of other sites from reaching a server on the visitor's own machine: a name that was made to point here
 * shows in `Host`, a page in `Origin`.
 */
export class HostGuard {
  readonly #names: ReadonlySet<string>;
  readonly #isOpen: boolean;
  readonly #options: GuardOptions;

  constructor(options: GuardOptions) {
    const { host, allowedHosts } = options;
    this.#options = options;
    this.#names = new Set([host, ...allowedHosts].map((name) => name.toLowerCase()));
    // Behind an address that is not loopback, clients use names that we cannot know unless they are listed.
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

  /** Rebinding needs a name that an attacker owns: addresses of the machine itself are no danger where it is meant to be reached. */
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
