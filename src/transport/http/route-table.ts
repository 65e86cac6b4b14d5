import type { HttpExchange } from "./exchange-io.ts";
import type { RequestTarget } from "./request-target.ts";

/**
 * Who may use a route. `anyone`: no token is needed. `client`: an authenticated principal, or everybody when auth is off.
 * `operator`: the scope owlclaw:admin. `server` and `page`: another server of the cluster, and the dashboard, which have
 * guards of their own.
 */
export type Role = "anyone" | "client" | "operator" | "server" | "page";

export type Method = "GET" | "HEAD" | "POST" | "PUT" | "DELETE";

/** What a route knows of one request beside the exchange. */
export interface RouteRequest extends RequestTarget {
  /** What the braces of the path have matched, as it was sent: not decoded. */
  readonly parts: readonly string[];
}

export interface Route {
  readonly methods: readonly Method[];
  /** `/api/sandboxes/{name}`: braces match one segment; `{path...}` matches the rest. */
  readonly path: string;
  readonly role: Role;
  /** For docs/protocol.md. */
  readonly about: string;
  /** Also while the server stops. */
  readonly isAlwaysServed?: boolean;
  serve(exchange: HttpExchange, request: RouteRequest): void | Promise<void>;
}

export interface RouteMatch {
  /** The routes of the path, one for each of its methods. */
  readonly routes: readonly Route[];
  readonly parts: readonly string[];
}

interface Pattern {
  readonly regex: RegExp;
  readonly routes: Route[];
}

/** Finds the routes of a path. Paths are compared as they are sent; of several patterns that match, the first counts. */
export class RouteTable {
  readonly #fixed = new Map<string, Route[]>();
  readonly #patterns = new Map<string, Pattern>();

  constructor(routes: readonly Route[]) {
    for (const route of routes) this.#routesOf(route.path).push(route);
  }

  find(path: string): RouteMatch | undefined {
    const fixed = this.#fixed.get(path);
    if (fixed !== undefined) return { routes: fixed, parts: [] };
    for (const { regex, routes } of this.#patterns.values()) {
      const match = regex.exec(path);
      if (match !== null) return { routes, parts: match.slice(1) };
    }
    return undefined;
  }

  #routesOf(path: string): Route[] {
    if (!path.includes("{")) {
      const routes = this.#fixed.get(path) ?? [];
      this.#fixed.set(path, routes);
      return routes;
    }
    const pattern = this.#patterns.get(path) ?? { regex: regexOf(path), routes: [] };
    this.#patterns.set(path, pattern);
    return pattern.routes;
  }
}

/** The methods that a path has, for `Allow`. */
export function methodsOf({ routes }: RouteMatch): string {
  return routes.flatMap(({ methods }) => methods).join(", ");
}

function regexOf(path: string): RegExp {
  const source = path
    .replaceAll(/[.]/g, String.raw`\.`)
    .replaceAll(/\{\w+\\\.\\\.\\\.\}/g, "(.*)")
    .replaceAll(/\{\w+\}/g, "([^/]+)");
  return new RegExp(`^${source}$`, "s");
}
