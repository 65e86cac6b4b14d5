import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { memoryDisk, privateFolder } from "./private-folder.ts";

/** A real PostgreSQL of one's own, on a unix socket in a folder that goes with it. */
export interface PostgresService {
  /** For `store.url`. */
  readonly url: string;
  /** Runs SQL as the owner and hands back what psql prints. */
  sql(text: string): string;
  /** Ends it as a crash would, and starts it again on the same data. */
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

const VERSIONS = "/usr/lib/postgresql";

/** Why tests with PostgreSQL cannot run here; nothing when they can. */
export const POSTGRES_MISSING: string | undefined =
  programFolder() === undefined ? "the Debian package postgresql is not installed" : undefined;

export async function startPostgres(place: string = memoryDisk()): Promise<PostgresService> {
  const bin = programFolder();
  if (bin === undefined) throw new Error(POSTGRES_MISSING);
  const folder = privateFolder("postgres", place);
  const data = join(folder.path, "data");
  const options = { ...folder.user, cwd: folder.path, env: { PATH: process.env["PATH"], LC_ALL: "C.UTF-8" } };
  execFileSync(join(bin, "initdb"), ["-D", data, "-U", "owlclaw", "-A", "trust", "-E", "UTF8", "--no-sync"], {
    ...options,
    stdio: "pipe",
  });
  let server: ChildProcess | undefined;
  const service: PostgresService = {
    url: `postgres:///postgres?host=${encodeURIComponent(folder.path)}&user=owlclaw`,
    sql: (text) =>
      execFileSync(join(bin, "psql"), ["-h", folder.path, "-U", "owlclaw", "-d", "postgres", "-AtX", "-c", text], {
        ...options,
        encoding: "utf8",
      }).trim(),
    async start() {
      // No address at all: only who reaches the folder reaches the server.
      const args = ["-D", data, "-k", folder.path, "-c", "listen_addresses=", "-c", "max_connections=60"];
      server = spawn(join(bin, "postgres"), args, { ...options, stdio: ["ignore", "ignore", "pipe"] });
      await ready(server);
    },
    async kill() {
      // The postmaster alone: its children notice and end, as after a crash.
      await ended(server, "SIGQUIT");
    },
    async stop() {
      await ended(server, "SIGINT");
      folder.remove();
    },
  };
  await service.start();
  return service;
}

async function ready(server: ChildProcess): Promise<void> {
  if (server.stderr === null) throw new Error("no pipe");
  const seen: string[] = [];
  const lines = createInterface({ input: server.stderr });
  for await (const line of lines) {
    seen.push(line);
    if (line.includes("ready to accept connections")) {
      server.stderr.resume();
      return;
    }
  }
  throw new Error(`PostgreSQL did not start:\n${seen.join("\n")}`);
}

async function ended(server: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
  server.kill(signal);
  await once(server, "exit");
}

function programFolder(): string | undefined {
  if (!existsSync(VERSIONS)) return undefined;
  return readdirSync(VERSIONS)
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(VERSIONS, version, "bin"))
    .find((bin) => existsSync(join(bin, "initdb")));
}
