import type { IncomingMessage } from "node:http";
import type { Target } from "./admission.ts";
import { formatHost, parseHost } from "../../config/hosts/host.ts";
import { EgressRefusal } from "./refusal.ts";

export interface HttpTarget extends Target {
  /** Path and query. */
  readonly path: string;
}

/** `CONNECT host:port`. The port is required. */
export function parseConnectTarget(text: string): Target {
  const match = /^(\[[^[\]]*\]|[^:[\]]*):([0-9]*)$/.exec(text);
  if (match === null) throw malformed("CONNECT wants host:port");
  return { host: readHost(match[1] ?? ""), port: readPort(match[2] ?? "") };
}

/** `GET http://host[:port]/path`, as clients send it to a proxy. */
export function parseAbsoluteTarget(text: string): HttpTarget {
  if (/^https:/i.test(text)) throw malformed("https goes through CONNECT, not through a plain request");
  const match = /^http:\/\/([^/?#]*)([/?][^#]*)?$/i.exec(text);
  if (match === null) throw malformed("this is a proxy: send http://host/path, or CONNECT host:port");
  const [authority, path = "/"] = [match[1] ?? "", match[2]];
  if (authority.includes("@")) throw malformed("user names in the URL are not accepted");
  return { ...parseAuthority(authority), path: path.startsWith("/") ? path : `/${path}` };
}

/**
 * The Host header, which must not be repeated: of several, Node reads the first and an origin server may read another.
 */
export function soleHostHeader(request: IncomingMessage): string | undefined {
  const values = request.rawHeaders.filter((_, index, all) => index % 2 === 1 && /^host$/i.test(all[index - 1] ?? ""));
  if (values.length > 1) throw malformed("more than one Host header");
  return values[0];
}

/** Whether the header names the target. Without a port it means the default port, in CONNECT the port of the target. */
export function hostHeaderAgrees(
  header: string | undefined,
  target: Target & { readonly isConnect: boolean },
): boolean {
  if (header === undefined) return true;
  try {
    const named = parseAuthority(header, target.isConnect ? target.port : 80);
    return formatHost(named.host) === formatHost(target.host) && named.port === target.port;
  } catch {
    // The header is not a valid host.
    return false;
  }
}

function parseAuthority(text: string, defaultPort = 80): Target {
  const match = /^(\[[^[\]]*\]|[^:[\]]*)(?::([0-9]*))?$/.exec(text);
  if (match === null) throw malformed("the host is malformed");
  const port = match[2] === undefined ? defaultPort : readPort(match[2]);
  return { host: readHost(match[1] ?? ""), port };
}

function readHost(text: string): Target["host"] {
  const parsed = parseHost(text);
  if ("problem" in parsed) throw malformed(parsed.problem);
  return parsed.host;
}

function readPort(text: string): number {
  const port = Number(text);
  if (!/^[0-9]{1,5}$/.test(text) || port < 1 || port > 65_535) throw malformed("the port is not from 1 to 65535");
  return port;
}

function malformed(detail: string): EgressRefusal {
  return new EgressRefusal(400, "malformed request", `egress refused: ${detail}`);
}
