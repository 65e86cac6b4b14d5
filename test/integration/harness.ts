import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { afterAll } from "vitest";
import { keepHandlers, seedHandlers } from "../setup/kept-handlers.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
export const BIN: string = path.join(ROOT, "dist/main.js");
const FIXTURES = path.join(ROOT, "test/fixtures");

/** Everything the servers of one test file write is below it, compiled handlers included. */
const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-integration-"));
const running = new Set<ChildProcess>();
const DATA = path.join(folder, "data");
const OWN = "the test's own";
/** The handlers of the servers of each data folder. */
const handlersOf = new Map<string, Set<string>>();
let configCount = 0;
let scratchCount = 0;

afterAll(async () => {
  for (const child of running) {
    child.kill("SIGKILL");
    await exitOf(child);
  }
  for (const [root, all] of handlersOf) {
    const [handlers = OWN, ...others] = all;
    if (others.length === 0 && handlers !== OWN) keepHandlers(root, handlers);
  }
  rmSync(folder, { recursive: true, force: true });
});

export interface ServerOptions {
  /** Keys of mcp-server.yaml, over the fixture's own. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Folder under test/fixtures. */
  readonly handlers?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export type LogLine = Readonly<Record<string, unknown>>;

/** The real bin in a process of its own. */
export class ServerProcess {
  readonly child: ChildProcess;
  readonly logs: LogLine[] = [];
  readonly stderr: string[] = [];
  readonly #waiting = new Set<() => void>();

  constructor(child: ChildProcess) {
    this.child = child;
    running.add(child);
    child.once("exit", () => {
      running.delete(child);
      this.#wake();
    });
    if (child.stderr === null) throw new Error("the server needs a pipe for stderr");
    createInterface({ input: child.stderr }).on("line", (line) => {
      this.stderr.push(line);
      const parsed = parseJson(line);
      if (typeof parsed === "object" && parsed !== null) this.logs.push(parsed as LogLine);
      this.#wake();
    });
  }

  /** The first log line with this message, past or future. */
  async logged(message: string): Promise<LogLine> {
    for (;;) {
      const found = this.logs.find((line) => line["message"] === message);
      if (found !== undefined) return found;
      if (hasExited(this.child))
        throw new Error(`the server ended before it logged "${message}":\n${this.stderr.join("\n")}`);
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  exit(): Promise<Exit> {
    return exitOf(this.child);
  }

  /** Ends the server as an operator would and wants it to end well. */
  async stop(): Promise<void> {
    if (!hasExited(this.child)) this.child.kill("SIGTERM");
    await this.exitedWell();
  }

  /** Waits for the end and throws when it was not a clean one. */
  async exitedWell(): Promise<void> {
    const { code, signal } = await this.exit();
    if (code !== 0) throw new Error(`the server ended with ${code ?? signal}:\n${this.stderr.join("\n")}`);
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

export interface HttpServer extends ServerProcess {
  readonly url: string;
  readonly origin: string;
}

/** Starts over HTTP on a free port and waits until the server says where it listens. */
export async function startHttp(options: ServerOptions = {}): Promise<HttpServer> {
  const args = [BIN, ...startArguments("http", options)];
  const server = new ServerProcess(
    spawn(process.execPath, args, { env: environment(options), stdio: ["ignore", "ignore", "pipe"] }),
  );
  const { url } = await server.logged("listening");
  return Object.assign(server, { url: String(url), origin: new URL(String(url)).origin });
}

export interface StdioCommand {
  readonly command: string;
  readonly args: string[];
  readonly env: Record<string, string>;
}

/** How a client starts the server over stdio, for clients that do it themselves. */
export function stdioCommand(options: ServerOptions = {}): StdioCommand {
  return {
    command: process.execPath,
    args: [BIN, ...startArguments("stdio", options)],
    env: { ...environment(options) },
  };
}

export function startArguments(transport: "stdio" | "http", options: ServerOptions = {}): string[] {
  return ["mcp-server", "start", "--transport", transport, "--config", writeConfig(options)];
}

export function environment({ env = {} }: ServerOptions = {}): Record<string, string> {
  const { PATH = "", HOME = "" } = process.env;
  return { PATH, HOME, ...env };
}

/** A path where nothing is yet; it goes with what else the file's servers leave. */
export function scratchFile(): string {
  return path.join(folder, `scratch-${++scratchCount}`);
}

/** JSON is YAML, so the file needs no writer of its own. */
export function writeConfig({ config = {}, handlers = "handlers" }: ServerOptions = {}): string {
  const { http, ...rest } = config;
  const file = path.join(folder, `mcp-server-${++configCount}.yaml`);
  const content = {
    http: { host: "127.0.0.1", port: 0, ...(typeof http === "object" ? http : {}) },
    // These servers answer with handlers alone; the tests of sandboxes start their own.
    sandbox: { root: DATA, enabled: false },
    // One process: what a held call is known by is in its memory, and a busy machine may look like a blocked worker.
    handlers: { paths: [path.join(FIXTURES, handlers)], ...(handlers === "handlers" ? { workers: 1 } : {}) },
    // Tests call faster than people do, and all servers of a file count in one folder. Who says anything of governance
    // says this as well, and `{}` is what an operator has who says nothing.
    governance: { defaults: { callsPerMinute: 100_000 } },
    ...rest,
  };
  writeFileSync(file, JSON.stringify(content));
  seed(content);
  return file;
}

/** Only for fixtures: what a test has written to a folder of its own is compiled by the server that it starts. */
function seed({ handlers, sandbox }: { readonly handlers: object; readonly sandbox: object }): void {
  const paths: unknown = "paths" in handlers ? handlers.paths : undefined;
  const root = "root" in sandbox ? String(sandbox.root) : DATA;
  const areFixtures = Array.isArray(paths) && paths.every((each) => String(each).startsWith(`${FIXTURES}/`));
  const key = areFixtures ? JSON.stringify(handlers) : OWN;
  handlersOf.set(root, (handlersOf.get(root) ?? new Set()).add(key));
  if (areFixtures) seedHandlers(root, key);
}

/** Asks again until the answer is good; the test's own time-out is the limit. */
export async function until<T>(ask: () => T | Promise<T>, isGood: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await ask();
    if (isGood(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

async function exitOf(child: ChildProcess): Promise<Exit> {
  if (!hasExited(child)) await once(child, "exit");
  return { code: child.exitCode, signal: child.signalCode };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // What is no JSON is no log line.
    return undefined;
  }
}
