import { execFile } from "node:child_process";
import { createServer, request } from "node:http";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  BIN,
  environment,
  type HttpServer,
  type ServerOptions,
  startHttp,
  writeConfig,
} from "../integration/harness.ts";
import { POSTGRES_MISSING, type PostgresService, startPostgres } from "./postgres.ts";

export const SERVICES_MISSING: string | undefined = POSTGRES_MISSING;
export const CLUSTER_KEY = "the servers of these tests share this key of theirs";

/** What servers share, for real. */
export interface Services {
  readonly postgres: PostgresService;
  /** Of the ledger that all of them write. */
  readonly keyFolder: string;
  /** One server of several; each has a data folder of its own. */
  start(options?: ServerOptions): Promise<HttpServer>;
  /** What `ledger verify` says of the ledger that all of them wrote. */
  verify(): Promise<{ readonly code: number; readonly out: string }>;
  stop(): Promise<void>;
}

export async function startServices(): Promise<Services> {
  const postgres = await startPostgres();
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-cluster-"));
  const shared = {
    store: { url: postgres.url },
    limits: { leaseSeconds: 5 },
    ledger: { keyFolder: join(folder, "keys") },
    cluster: { key: CLUSTER_KEY },
  };
  const configOf = ({ config = {}, ...rest }: ServerOptions): ServerOptions => {
    const sandbox = { root: mkdtempSync(join(folder, "data-")), enabled: false, ...Object(config["sandbox"]) };
    return { ...rest, config: { ...shared, ...config, sandbox } };
  };
  return {
    postgres,
    keyFolder: shared.ledger.keyFolder,
    start: (options = {}) => startHttp(configOf(options)),
    async verify() {
      const args = [BIN, "mcp-server", "ledger", "verify", "--config", writeConfig(configOf({}))];
      return promisify(execFile)(process.execPath, args, { env: environment() }).then(
        ({ stdout }) => ({ code: 0, out: stdout }),
        (error: { code: number; stdout: string; stderr: string }) => ({
          code: error.code,
          out: error.stdout + error.stderr,
        }),
      );
    },
    async stop() {
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Sends every request to the next server, as a balancer does that knows nothing of sessions. */
export async function startBalancer(origins: readonly string[]): Promise<{ url: string; close(): void }> {
  let next = 0;
  const server = createServer((incoming, outgoing) => {
    const origin = origins[next++ % origins.length] ?? "";
    const { host: _host, ...headers } = incoming.headers;
    const onward = request(`${origin}${incoming.url ?? ""}`, { method: incoming.method ?? "GET", headers });
    onward.on("response", (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
