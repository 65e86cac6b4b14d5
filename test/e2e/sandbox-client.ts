import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll } from "vitest";
import { LogLines } from "./log-lines.ts";
import type { Account } from "./sandbox-account.ts";

export const BIN: string = resolve(import.meta.dirname, "../../dist/main.js");

export type TransportName = "stdio" | "http";

export interface Place {
  readonly folder: string;
  /** Everything that servers started here write. */
  readonly dataFolder: string;
  /** Who runs servers here; absent: whoever runs the tests. */
  readonly account?: Account;
}

const folders: string[] = [];
const children = new Set<ChildProcess>();
const logs = new Set<LogLines>();
const clients = new Set<Client>();

afterAll(async () => {
  for (const client of clients) await client.close();
  for (const child of children) {
    child.kill("SIGTERM");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  for (const log of logs) log.assertNothingElse();
});

export function makePlace(account?: Account): Place {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-e2e-"));
  folders.push(folder);
  if (account === undefined) return { folder, dataFolder: join(folder, "data") };
  chownSync(folder, account.uid, account.uid);
  return { folder, dataFolder: join(folder, "data"), account };
}

export type Settings = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export function writeConfig({ folder, dataFolder }: Place, settings: Settings): string {
  const file = join(folder, `config-${Math.random().toString(36).slice(2)}.yaml`);
  const { sandbox = {}, ...rest } = settings;
  const content = {
    http: { host: "127.0.0.1", port: 0 },
    logging: { level: "info" },
    // Tests call faster than people do.
    governance: { defaults: { callsPerMinute: 100_000, concurrency: 1000 } },
    ...rest,
    sandbox: { root: dataFolder, pool: { size: 0 }, ...sandbox },
  };
  writeFileSync(file, JSON.stringify(content));
  return file;
}

/** The real bin over HTTP, with its log. */
export class Server {
  readonly child: ChildProcess;
  readonly #lines: LogLines;
  readonly #waiting = new Set<() => void>();

  constructor(place: Place, settings: Settings, env: Readonly<Record<string, string>> = {}) {
    const { node = process.execPath, main = BIN, uid = process.getuid?.() } = place.account ?? {};
    const args = [main, "mcp-server", "start", "--transport", "http", "--config", writeConfig(place, settings)];
    this.child = spawn(node, args, {
      cwd: place.folder,
      env: { PATH: process.env["PATH"], HOME: place.folder, TMPDIR: place.folder, ...env },
      stdio: ["ignore", "ignore", "pipe"],
      ...(uid === undefined || uid === process.getuid?.() ? {} : { uid, gid: uid }),
    });
    children.add(this.child);
    const wakeAll = (): void => {
      for (const wake of this.#waiting) wake();
    };
    this.#lines = new LogLines(this.child.stderr!, wakeAll);
    logs.add(this.#lines);
    this.child.once("exit", wakeAll);
  }

  get log(): Record<string, unknown>[] {
    return this.#lines.lines;
  }

  async logged(message: string): Promise<Record<string, unknown>> {
    for (;;) {
      const found = this.log.find((line) => line["message"] === message);
      if (found !== undefined) return found;
      this.#lines.assertNothingElse();
      if (this.child.exitCode !== null) throw new Error(`the server ended: ${JSON.stringify(this.log)}`);
      await new Promise<void>((wake) => this.#waiting.add(wake));
    }
  }

  async url(): Promise<string> {
    return String((await this.logged("listening"))["url"]);
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    this.child.kill(signal);
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "exit");
    children.delete(this.child);
    return this.child.exitCode;
  }
}

export async function connectHttp(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Client> {
  const client = new Client({ name: "e2e", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { ...headers } } }));
  clients.add(client);
  return client;
}

export async function connectStdio(
  place: Place,
  settings: Settings = {},
  flags: readonly string[] = [],
): Promise<Client> {
  const client = new Client({ name: "e2e", version: "1" });
  const args = [BIN, "mcp-server", "start", "--transport", "stdio", "--config", writeConfig(place, settings), ...flags];
  const env = { PATH: process.env["PATH"] ?? "", HOME: place.folder, TMPDIR: place.folder };
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env, stderr: "ignore" }));
  clients.add(client);
  return client;
}

/** A client of the official SDK on a server of its own. */
export async function connect(transport: TransportName, place: Place, settings: Settings = {}): Promise<Client> {
  if (transport === "stdio") return connectStdio(place, settings);
  return connectHttp(await new Server(place, settings).url());
}

export interface Called {
  readonly content: {
    readonly type: string;
    readonly text?: string;
    readonly mimeType?: string;
    readonly data?: string;
  }[];
  readonly structuredContent?: Record<string, unknown>;
  readonly isError?: boolean;
  readonly [extra: string]: unknown;
}

/** The SDK's own minute is too short for what waits for a person, and on a busy machine for more. */
const PATIENT = { timeout: 600_000 };

export async function call(client: Client, name: string, args: Record<string, unknown> = {}): Promise<Called> {
  return (await client.callTool({ name, arguments: args }, PATIENT)) as unknown as Called;
}

/** The first line and the JSON after it, which must parse. */
export function readText({ content }: Called): {
  readonly head: string;
  readonly hint?: string;
  readonly json: Record<string, unknown>;
} {
  const [head = "", second = "", third = ""] = (content[0]?.text ?? "").split("\n");
  if (!second.startsWith("hint: ")) return { head, json: JSON.parse(second) as Record<string, unknown> };
  return { head, hint: second.slice(6), json: third === "" ? {} : (JSON.parse(third) as Record<string, unknown>) };
}
