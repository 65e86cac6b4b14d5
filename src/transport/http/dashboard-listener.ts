import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { OwlError } from "../../errors/owl-error.ts";
import { sendJson } from "./exchange-io.ts";
import { readTarget, type RequestTarget } from "./request-target.ts";
import type { DashboardDoor } from "./dashboard-door.ts";

export interface DashboardListener {
  /** Scheme, host and port. */
  readonly origin: string;
  close(): Promise<void>;
}

const HOST = "127.0.0.1";
const REQUEST_TIMEOUT_MS = 30_000;
const MAX_CONNECTIONS = 100;

/** The page on a port of loopback that serves nothing else, for servers whose clients use stdio. */
export async function listenForDashboard(gate: DashboardGate, port: number): Promise<DashboardListener> {
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT_MS, joinDuplicateHeaders: true },
    (request, response) => {
      void serve(gate, request, response).catch(() => response.destroy());
    },
  );
  server.maxConnections = MAX_CONNECTIONS;
  const bound = await listen(server, port);
  return { origin: `http://${HOST}:${bound}`, close: () => closed(server) };
}

async function serve(gate: DashboardGate, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const target = readTarget(request);
  if (gate.serves(target.path)) return gate.handle(request, response, target);
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

type Door = Pick<DashboardDoor, "handle">;

/** What stands in the router for the page: its code is loaded when somebody comes. */
export class DashboardGate {
  readonly #open: () => Promise<Door>;
  #door: Promise<Door> | undefined;

  constructor(open: () => Promise<Door>) {
    this.#open = open;
  }

  serves(path: string): boolean {
    return path === "/dashboard" || path.startsWith("/dashboard/");
  }

  async handle(request: IncomingMessage, response: ServerResponse, target: RequestTarget): Promise<void> {
    const door = await this.#opened();
    await door.handle(request, response, target);
  }

  async #opened(): Promise<Door> {
    const opening = (this.#door ??= this.#open());
    try {
      return await opening;
    } catch (error) {
      // The next who comes tries again.
      if (this.#door === opening) this.#door = undefined;
      throw error;
    }
  }
}
