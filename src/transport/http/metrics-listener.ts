import { createServer, type Server } from "node:http";
import type { Logger } from "../../telemetry/logger.ts";
import { METRICS_CONTENT_TYPE } from "../../telemetry/metrics/metrics.ts";
import { METRICS_PATH, type MetricsDoor } from "./metrics-route.ts";

export interface MetricsListener {
  readonly url: string;
  close(): Promise<void>;
}

const REQUEST_TIMEOUT_MS = 10_000;
const MAX_CONNECTIONS = 20;

/** Metrics on an address of their own, which serves nothing else: whoever can reach it may read them. */
export async function listenForMetrics(options: {
  readonly address: string;
  readonly door: MetricsDoor;
  readonly logger: Logger;
}): Promise<MetricsListener> {
  const { door, logger } = options;
  const { host, port } = splitAddress(options.address);
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    const [path] = (request.url ?? "").split("?");
    const isRead = request.method === "GET" || request.method === "HEAD";
    if (path !== METRICS_PATH || !isRead) {
      response.writeHead(path === METRICS_PATH ? 405 : 404, { "content-length": 0 }).end();
      return;
    }
    door.text().then(
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

/** `127.0.0.1:9464`, `[::1]:9464`, `localhost:0`; the configuration has checked it. */
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
