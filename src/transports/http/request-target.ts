import type { IncomingMessage } from "node:http";
import { OwlError } from "../../errors/owl-error.ts";

export interface RequestTarget {
  /** As it was sent: nothing is decoded or resolved, so that no two readers can see two paths. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Whom the client believes to talk to; the target's own authority counts above the Host header. */
  readonly authority: string | undefined;
}

const ABSOLUTE = /^https?:\/\/([^/?#]+)(\/[^?]*)?(?:\?(.*))?$/i;
const ORIGIN = /^(\/[^?]*)(?:\?(.*))?$/s;

export function readTarget(request: IncomingMessage): RequestTarget {
  const text = request.url ?? "";
  const host = onlyHeader(request, "host");
  const origin = ORIGIN.exec(text);
  if (origin !== null) return { path: origin[1] ?? "/", query: new URLSearchParams(origin[2]), authority: host };
  const absolute = ABSOLUTE.exec(text);
  if (absolute !== null)
    return { path: absolute[2] ?? "/", query: new URLSearchParams(absolute[3]), authority: absolute[1] };
  throw new OwlError("invalid_request", "the request target is neither a path nor an http URL");
}

/** Node keeps the first of two headers and drops the other; a request that could be read either way is refused. */
export function onlyHeader(
  { headers, rawHeaders }: IncomingMessage,
  name: "authorization" | "host",
): string | undefined {
  const value = headers[name];
  if (value === undefined) return undefined;
  const sent = rawHeaders.filter((raw, index) => index % 2 === 0 && raw.toLowerCase() === name).length;
  if (sent === 1) return value;
  throw new OwlError(
    name === "host" ? "invalid_request" : "unauthorized",
    `the request has more than one ${name} header`,
    {
      facts: name === "host" ? {} : { reason: "token_malformed" },
    },
  );
}
