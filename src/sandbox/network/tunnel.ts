import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Target } from "./admission.ts";
import { type Exchange, type ExchangeScope, openExchange, recordRefusal } from "./exchange.ts";
import { ClientHelloFilter } from "./client-hello.ts";
import { EgressRefusal, toRawResponse } from "./refusal.ts";
import { parseConnectTarget, soleHostHeader } from "./request-target.ts";

// TLS: fatal alert, unrecognized_name. Clients print its name.
const UNRECOGNIZED_NAME_ALERT = Buffer.from([21, 3, 3, 0, 2, 2, 112]);

interface TunnelOptions {
  readonly request: IncomingMessage;
  readonly client: Socket;
  /** Bytes that the client sent after its request. */
  readonly head: Buffer;
  readonly scope: ExchangeScope;
  readonly signal: AbortSignal;
}

/** Serves CONNECT. It never rejects: it answers with the failure and closes the client's connection. */
export async function serveTunnel(options: TunnelOptions): Promise<void> {
  const { client, head, scope, signal } = options;
  try {
    const target = readTarget(options);
    const exchange = await openExchange(target, scope, signal);
    if (client.destroyed) {
      exchange.upstream.destroy();
      return;
    }
    client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    if (head.length > 0) client.unshift(head);
    join({ client, exchange, target, scope });
  } catch (thrown) {
    if (thrown instanceof EgressRefusal) client.end(toRawResponse(thrown), () => client.destroySoon());
    else client.destroy();
  }
}

function readTarget({ request, scope }: TunnelOptions): Target {
  let target: Target | undefined;
  try {
    target = parseConnectTarget(request.url ?? "");
    if (!scope.controls.hostHeaderAgrees(soleHostHeader(request), { ...target, isConnect: true })) {
      throw new EgressRefusal(400, "host mismatch", "egress refused: the Host header names another host than CONNECT");
    }
    return target;
  } catch (thrown) {
    if (thrown instanceof EgressRefusal) {
      recordRefusal(scope.decisions, { refusal: thrown, ...(target === undefined ? {} : { target }) });
    }
    throw thrown;
  }
}

/** Pipes both ways, including half-closed connections, until one side is closed. */
function join(options: { client: Socket; exchange: Exchange; target: Target; scope: ExchangeScope }): void {
  const { client, exchange, target, scope } = options;
  const { upstream } = exchange;
  const filter = new ClientHelloFilter({
    agrees: (serverName) => scope.controls.serverNameAgrees(serverName, target),
    onRefused: (detail) => {
      exchange.note({ allowed: false, reason: detail });
      upstream.unpipe(client);
      upstream.destroy();
      client.end(UNRECOGNIZED_NAME_ALERT);
    },
  });
  client.pipe(filter).pipe(upstream);
  upstream.pipe(client);
  client.once("end", () => upstream.setTimeout(scope.limits.halfClosedTimeoutMs));
  client.once("close", () => upstream.destroySoon());
  client.on("error", () => upstream.destroy());
  upstream.on("timeout", () => upstream.destroy());
  upstream.once("close", () => {
    filter.destroy();
    // After a clean end the client may still read buffered bytes.
    if (upstream.readableEnded || client.writableEnded) client.destroySoon();
    else client.destroy();
  });
}
