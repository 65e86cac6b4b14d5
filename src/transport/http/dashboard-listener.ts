import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { OwlError } from "../../errors/owl-error.ts";
import { sendJson } from "./exchange-io.ts";
import { readTarget, type RequestTarget } from "./request-target.ts";
import type { DashboardEndpoint } from "./dashboard-endpoint.ts";

export interface DashboardListener {
  /** Scheme, host and port. */
  readonly origin: string;
  close(): Promise<void>;
}

const HOST = "127.0.0.1";
const REQUEST_TIMEOUT_MS = 30_000;
const MAX_CONNECTIONS = 100;

/** Serves only the dashboard, on a loopback port, for servers whose clients use stdio. */
export async function listenForDashboard(dashboard: LazyDashboard, port: number): Promise<DashboardListener> {
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT_MS, joinDuplicateHeaders: true },
    (request, response) => {
      void serve(dashboard, request, response).catch(() => response.destroy());
    },
  );
  server.maxConnections = MAX_CONNECTIONS;
  const bound = await listen(server, port);
  return { origin: `http://${HOST}:${bound}`, close: () => closed(server) };
}

async function serve(dashboard: LazyDashboard, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const target = readTarget(request);
  if (dashboard.serves(target.path)) return dashboard.handle(request, response, target);
  const { kind, message } = new OwlError("route_not_found", "only /dashboard is here");
  sendJson(response, 404, { error: { kind, message } });
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: HOST, port }, () => {
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

type Endpoint = Pick<DashboardEndpoint, "handle">;

/** Loads the code of the dashboard at the first request. */
export class LazyDashboard {
  readonly #open: () => Promise<Endpoint>;
  #endpoint: Promise<Endpoint> | undefined;

  constructor(open: () => Promise<Endpoint>) {
    this.#open = open;
  }

  serves(path: string): boolean {
    return path === "/dashboard" || path.startsWith("/dashboard/");
  }

  async handle(request: IncomingMessage, response: ServerResponse, target: RequestTarget): Promise<void> {
    const endpoint = await this.#opened();
    await endpoint.handle(request, response, target);
  }

  async #opened(): Promise<Endpoint> {
    const opening = (this.#endpoint ??= this.#open());
    try {
      return await opening;
    } catch (error) {
      // The next request tries again.
      if (this.#endpoint === opening) this.#endpoint = undefined;
      throw error;
    }
  }
}
