import { type IncomingMessage, createServer, type Server } from "node:http";
import { ADMIN_SCOPE, type Principal } from "../../auth/principal.ts";
import { requireScope } from "../../auth/protected-resource.ts";
import type { Config } from "../../config/schema.ts";
import { isLoopbackHost } from "../../config/value-rules.ts";
import { OwlError } from "../../errors/owl-error.ts";
import { METRICS_CONTENT_TYPE } from "../../telemetry/metrics/metrics.ts";
import type { HttpExchange } from "./exchange-io.ts";
import { isProxied } from "./guards.ts";
import type { Logger } from "../../telemetry/logger.ts";

export interface MetricsSource {
  text(): Promise<string>;
  /** Counts requests whose token was refused, by reason. */
  readonly loginsRefused?: { add(labels: readonly string[], amount: number): void };
}

export const METRICS_PATH = "/metrics";

/**
 * `GET /metrics`. With auth on it requires the operator's scope. With auth off it is served only when the server
 * listens on loopback and no proxy forwarded the request. Otherwise metrics need a separate listener.
 */
export class MetricsEndpoint {
  readonly #source: MetricsSource;
  readonly #config: Config;

  constructor(source: MetricsSource, config: Config) {
    this.#source = source;
    this.#config = config;
  }

  async send({ request, response, principal }: HttpExchange): Promise<void> {
    assertMayRead(this.#config, principal, request);
    const text = await this.#source.text();
    response.writeHead(200, {
      "content-type": METRICS_CONTENT_TYPE,
      "content-length": Buffer.byteLength(text),
      "cache-control": "no-store",
    });
    response.end(text);
  }
}

function assertMayRead({ auth, http }: Config, principal: Principal, { headers }: IncomingMessage): void {
  if (auth.enabled) return requireScope(principal, ADMIN_SCOPE);
  if (isLoopbackHost(http.host) && !isProxied(headers)) return;
  throw new OwlError("forbidden", "metrics are not for everybody, and with auth off nobody is known", {
    facts: { reason: "auth_disabled" },
    hint: `turn auth.enabled on and send a token with the scope ${ADMIN_SCOPE}, or set telemetry.metricsAddress to a listener of their own`,
  });
}

export interface MetricsListener {
  readonly url: string;
  close(): Promise<void>;
}

const REQUEST_TIMEOUT_MS = 10_000;
const MAX_CONNECTIONS = 20;

/** Serves only metrics, on a separate address. Every client that can connect may read them. */
export async function listenForMetrics(options: {
  readonly address: string;
  readonly source: MetricsSource;
  readonly logger: Logger;
}): Promise<MetricsListener> {
  const { source, logger } = options;
  const { host, port } = splitAddress(options.address);
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    const [path] = (request.url ?? "").split("?");
    const isRead = request.method === "GET" || request.method === "HEAD";
    if (path !== METRICS_PATH || !isRead) {
      response.writeHead(path === METRICS_PATH ? 405 : 404, { "content-length": 0 }).end();
      return;
    }
    source.text().then(
      (text) =>
        response.writeHead(200, { "content-type": METRICS_CONTENT_TYPE, "cache-control": "no-store" }).end(text),
      (error: unknown) => {
        logger.error("metrics could not be read", { error });
        response.writeHead(500, { "content-length": 0 }).end();
      },
    );
  });
  server.maxConnections = MAX_CONNECTIONS;
  const bound = await listen(server, host, port);
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${bound}${METRICS_PATH}`;
  logger.info("metrics", { url });
  return { url, close: () => closed(server) };
}

/** Splits `127.0.0.1:9464`, `[::1]:9464` or `localhost:0`, which the config schema has validated. */
function splitAddress(address: string): { readonly host: string; readonly port: number } {
  const at = address.lastIndexOf(":");
  return { host: address.slice(0, at).replace(/^\[(.*)\]$/, "$1"), port: Number(address.slice(at + 1)) };
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.removeListener("error", reject);
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
