import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { stringify } from "yaml";

const ROOT = resolve(import.meta.dirname, "../..");
const MAIN = join(ROOT, "dist/main.js");
export const HANDLERS: string = join(import.meta.dirname, "handlers");

export interface ServerOptions {
  /** What the config file says, beside the handlers and a data folder of its own. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  readonly nodeArgs?: readonly string[];
  /** A command that runs the server's own. */
  readonly within?: readonly string[];
  /** Default: HTTP on a free port of 127.0.0.1. */
  readonly transport?: "http" | "stdio";
}

/** The built server in a process of its own, with everything it has written to stderr. */
export interface ServerProcess {
  readonly child: ChildProcess;
  readonly folder: string;
  readonly exited: Promise<number | null>;
  log(): string;
  /** Resolves with the line once the log has one with this text. */
  logged(text: string): Promise<string>;
  kill(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
}

export interface HttpServerProcess extends ServerProcess {
  readonly origin: string;
  readonly port: number;
}

export const MANY_CALLS = { callsPerMinute: 1_000_000, callsPerDay: 10_000_000, concurrency: 10_000 };

export async function spawnServer(options: ServerOptions = {}): Promise<ServerProcess> {
  const { config = {}, env = {}, args = [], nodeArgs = [], within = [], transport = "http" } = options;
  const folder = await mkdtemp(join(tmpdir(), "owlclaw-test-"));
  const file = join(folder, "mcp-server.yaml");
  const content = {
    transport,
    handlers: { paths: [HANDLERS] },
    sandbox: { root: join(folder, "data"), enabled: false },
    logging: { level: "debug" },
    // Attacks come by the thousand, and each must meet what it is meant for.
    governance: { defaults: MANY_CALLS },
    ...config,
  };
  await writeFile(file, stringify(content));
  const [program = "", ...argv] = [
    ...within,
    process.execPath,
    ...nodeArgs,
    MAIN,
    "mcp-server",
    "start",
    "--config",
    file,
    ...args,
  ];
  const { PATH = "" } = process.env;
  const child = spawn(program, argv, { cwd: folder, env: { PATH, HOME: folder, ...env } });
  return follow(child, folder);
}

export async function startHttp(options: ServerOptions = {}): Promise<HttpServerProcess> {
  const { env = {}, args = [] } = options;
  const address = [
    ...("MCP_SERVER_HOST" in env || args.includes("--host") ? [] : ["--host", "127.0.0.1"]),
    ...("MCP_SERVER_PORT" in env || args.includes("--port") ? [] : ["--port", "0"]),
  ];
  const server = await spawnServer({ ...options, args: [...args, ...address] });
  const line = await server.logged('"message":"listening"').catch(async (error: unknown) => {
    await server.stop();
    throw error;
  });
  const { origin, port } = new URL(JSON.parse(line).url);
  return { ...server, origin, port: Number(port) };
}

function follow(child: ChildProcess, folder: string): ServerProcess {
  let text = "";
  let ended = false;
  const waiting = new Set<() => void>();
  const wake = (): void => waiting.forEach((check) => check());
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    wake();
  });
  const exited = once(child, "close").then(([code]) => {
    ended = true;
    wake();
    return code as number | null;
  });
  return {
    child,
    folder,
    exited,
    log: () => text,
    logged: (wanted) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          const line = text
            .split("\n")
            .slice(0, -1)
            .find((candidate) => candidate.includes(wanted));
          if (line === undefined && !ended) return;
          waiting.delete(check);
          if (line === undefined) reject(new Error(`the server ended and never logged ${wanted}:\n${text}`));
          else resolve(line);
        };
        waiting.add(check);
        check();
      }),
    kill: (signal) => void child.kill(signal),
    async stop() {
      if (!ended) child.kill("SIGKILL");
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
