import { type ClientRequest, type IncomingMessage, request as httpRequest, type ServerResponse } from "node:http";
import { formatHost } from "../../config/hosts/host.ts";
import { type Exchange, type ExchangeScope, openExchange, recordRefusal } from "./exchange.ts";
import { EgressRefusal, phraseOf } from "./refusal.ts";
import { type HttpTarget, parseAbsoluteTarget, soleHostHeader } from "./request-target.ts";

/** Headers of one connection, not of the message. Host and framing headers are written by the proxy. */
const HOP_BY_HOP = new Set([
  "connection",
  "expect",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

interface ForwardOptions {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly scope: ExchangeScope;
  readonly signal: AbortSignal;
}

/** Serves a plain HTTP request to `http://…`. It never rejects: it answers with the failure and closes the client's connection. */
export async function forwardRequest(options: ForwardOptions): Promise<void> {
  const { response, scope, signal } = options;
  try {
    const target = readTarget(options);
    const exchange = await openExchange(target, scope, signal);
    if (response.destroyed || response.socket?.destroyed === true) exchange.upstream.destroy();
    else exchangeMessages({ ...options, target, exchange });
  } catch (thrown) {
    answerRefusal(response, thrown);
  }
}

export function answerRefusal(response: ServerResponse, thrown: unknown): void {
  if (!(thrown instanceof EgressRefusal) || response.headersSent) {
    response.destroy();
    return;
  }
  response.sendDate = false;
  response.writeHead(thrown.status, phraseOf(thrown), {
    "Content-Type": "text/plain; charset=utf-8",
    Connection: "close",
  });
  response.end(`${thrown.message}\n`);
}

function readTarget({ request, scope }: ForwardOptions): HttpTarget {
  let target: HttpTarget | undefined;
  try {
    target = parseAbsoluteTarget(request.url ?? "");
    if (request.rawHeaders.length / 2 > scope.limits.maxHeaders) {
      throw new EgressRefusal(431, "header flood", `egress refused: more than ${scope.limits.maxHeaders} headers`);
    }
    if (!scope.controls.hostHeaderAgrees(soleHostHeader(request), { ...target, isConnect: false })) {
      throw new EgressRefusal(400, "host mismatch", "egress refused: the Host header names another host than the URL");
    }
    return target;
  } catch (thrown) {
    if (thrown instanceof EgressRefusal) {
      recordRefusal(scope.decisions, { refusal: thrown, ...(target === undefined ? {} : { target }) });
    }
    throw thrown;
  }
}

type Exchanging = ForwardOptions & { readonly target: HttpTarget; readonly exchange: Exchange };

function exchangeMessages(options: Exchanging): void {
  const { request, response, exchange, scope } = options;
  const { upstream } = exchange;
  let isOver = false;
  const fail = (refusal: EgressRefusal): void => {
    if (isOver) return;
    isOver = true;
    exchange.note({ allowed: true, reason: refusal.reason });
    upstream.destroy();
    answerRefusal(response, refusal);
  };
  let outgoing: ClientRequest;
  try {
    outgoing = toUpstream(options);
  } catch {
    fail(new EgressRefusal(400, "malformed request", "egress refused: the path or a header is malformed"));
    return;
  }
  upstream.on("timeout", () => {
    fail(new EgressRefusal(504, "idle timeout", `egress failed: no answer in ${scope.limits.idleTimeoutMs} ms`));
  });
  outgoing.on("error", () => {
    fail(new EgressRefusal(502, "bad answer", "egress failed: the host broke off or sent no valid HTTP answer"));
  });
  outgoing.on("response", (incoming) => passBack(incoming, response));
  response.once("close", () => {
    isOver = true;
    upstream.destroy();
  });
  request.on("error", () => upstream.destroy());
  request.pipe(outgoing);
}

function toUpstream({ request, target, exchange, scope }: Exchanging): ClientRequest {
  const isDefaultPort = target.port === 80;
  const host = isDefaultPort ? formatHost(target.host) : `${formatHost(target.host)}:${target.port}`;
  const headers = ["Host", host, ...endToEnd(request)];
  if (request.headers["transfer-encoding"] !== undefined) headers.push("Transfer-Encoding", "chunked");
  headers.push("Connection", "close");
  return httpRequest({
    method: request.method,
    path: target.path,
    headers,
    setHost: false,
    insecureHTTPParser: false,
    maxHeaderSize: scope.limits.maxHeaderBytes * 4,
    createConnection: () => exchange.upstream,
  });
}

function passBack(incoming: IncomingMessage, response: ServerResponse): void {
  response.sendDate = false;
  response.writeHead(incoming.statusCode ?? 502, [...endToEnd(incoming), "Connection", "close"]);
  incoming.once("aborted", () => response.destroy());
  incoming.pipe(response);
}

/** The raw headers without those of the connection, and without those that `Connection` names. */
function endToEnd(message: IncomingMessage): string[] {
  const named = (message.headers.connection ?? "").toLowerCase().split(",");
  const dropped = new Set([...HOP_BY_HOP, ...named.map((name) => name.trim())]);
  // `Connection` must not remove the length: that would change the framing.
  dropped.delete("content-length");
  const kept: string[] = [];
  for (let index = 0; index + 1 < message.rawHeaders.length; index += 2) {
    const [name = "", value = ""] = message.rawHeaders.slice(index, index + 2);
    if (!dropped.has(name.toLowerCase())) kept.push(name, value);
  }
  return kept;
}
