import type { IncomingMessage } from "node:http";
import type { Config } from "../../config/schema.ts";
import { OwlError } from "../../errors/owl-error.ts";

export interface RequestTarget {
  /** As it was sent: nothing is decoded or resolved, so that no two readers can see two paths. */
  readonly path: string;
  readonly query: string;
  /** Whom the client believes to talk to; the target's own authority counts above the Host header. */
  readonly authority: string | undefined;
}

const ABSOLUTE = /^https?:\/\/([^/?#]+)(\/[^?]*)?(?:\?(.*))?$/i;
const ORIGIN = /^(\/[^?]*)(?:\?(.*))?$/s;

export function readTarget(request: IncomingMessage): RequestTarget {
  const text = request.url ?? "";
  const host = onlyHeader(request, "host");
  const origin = ORIGIN.exec(text);
  if (origin !== null) return { path: origin[1] ?? "/", query: origin[2] ?? "", authority: host };
  const absolute = ABSOLUTE.exec(text);
  if (absolute !== null) return { path: absolute[2] ?? "/", query: absolute[3] ?? "", authority: absolute[1] };
  throw new OwlError("invalid_request", "the request target is neither a path nor an http URL");
}

/**
 * The server joins a header that is sent twice with a comma, where Node alone would drop the second. Neither header may
 * hold one: a request that could be read two ways is refused.
 */
export function onlyHeader({ headers }: IncomingMessage, name: "authorization" | "host"): string | undefined {
  const value = headers[name];
  if (value === undefined || !value.includes(",")) return value;
  throw new OwlError(
    name === "host" ? "invalid_request" : "unauthorized",
    `the request has more than one ${name} header`,
    {
      facts: name === "host" ? {} : { reason: "token_malformed" },
    },
  );
}

/** The server's address as the client knows it. */
export function originOf({ headers }: Pick<IncomingMessage, "headers">, { http }: Pick<Config, "http">): string {
  return `${http.tls.certFile === "" ? "http" : "https"}://${headers.host ?? "localhost"}`;
}
