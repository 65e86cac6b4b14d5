import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { cpuSecondsOf, descendants } from "./process-tree.ts";
import { INITIALIZE, INITIALIZED } from "./requests.ts";

/** How much of a server's log is kept, to be shown when it dies. */
const KEPT_LOG_LINES = 50;

const running = new Set<ChildProcessWithoutNullStreams>();

/** What measured servers count and record is nobody's data. Each has a folder of its own, as servers do. */
const dataFolders = mkdtempSync(path.join(tmpdir(), "owlclaw-bench-"));

// An HTTP server does not notice that its benchmark has failed.
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(dataFolders, { recursive: true, force: true });
});

export function newDataFolder(): string {
  return mkdtempSync(path.join(dataFolders, "server-"));
}

/** A server under measurement: a process of its own that speaks HTTP or stdio. */
export class ServerProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #waiting = new Map<number, (line: string) => void>();
  readonly #log: string[] = [];
  readonly #listening: Promise<string>;
  #warmCreates = 0;
  #liveHeapMegabytes = Number.NaN;
  #heap: string | undefined;
  origin = "";

  private constructor(args: readonly string[], dataFolder = newDataFolder()) {
    this.#child = spawn(process.execPath, [...args], {
      stdio: "pipe",
      env: { ...process.env, SANDBOX_ROOT: dataFolder },
    });
    running.add(this.#child);
    this.#child.once("exit", () => running.delete(this.#child));
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.#onAnswer(line));
    const log = createInterface({ input: this.#child.stderr });
    this.#listening = new Promise((resolve) => {
      log.on("line", (line) => {
        const origin = listeningOrigin(line);
        if (origin !== undefined) resolve(origin);
        if (line.includes('"sandbox created"') && line.includes('"warm":true')) this.#warmCreates += 1;
        if (this.#log.length < KEPT_LOG_LINES) this.#log.push(line);
      });
    });
  }

  /** Resolves when an HTTP server says where it listens. */
  static async startHttp(args: readonly string[], dataFolder?: string): Promise<ServerProcess> {
    const server = new ServerProcess(args, dataFolder);
    server.origin = await Promise.race([server.#listening, server.#earlyEnd(args)]);
    return server;
  }

  /** Resolves when a stdio server has answered `initialize`. */
  static async startStdio(args: readonly string[], dataFolder?: string): Promise<ServerProcess> {
    const server = new ServerProcess(args, dataFolder);
    await Promise.race([server.request(0, INITIALIZE), server.#earlyEnd(args)]);
    server.#child.stdin.write(`${INITIALIZED}\n`);
    return server;
  }

  /** Sends one line and resolves with the line that answers it. */
  request(id: number, body: string): Promise<string> {
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#child.stdin.write(`${body}\n`);
    });
  }

  /** Of the server and of every process that works for it. */
  async cpuSeconds(): Promise<number> {
    const seconds = await Promise.all([this.pid, ...(await descendants(this.pid))].map(cpuSecondsOf));
    return seconds.reduce((sum, each) => sum + each, 0);
  }

  async rssMegabytes(): Promise<number> {
    const status = await readFile(`/proc/${this.#child.pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
  }

  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  /** Sandboxes made so far that were waiting in the pool, by the server's own log. */
  get warmCreates(): number {
    return this.#warmCreates;
  }

  async stop(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Lets the server clear up what it started. */
  async shutDown(): Promise<void> {
    await this.#end("SIGTERM");
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill(signal);
    await exited;
  }

  /** After the last collection of all garbage; only of a Node that was started with `--trace-gc`. */
  get liveHeapMegabytes(): number {
    return this.#liveHeapMegabytes;
  }

  #onAnswer(line: string): void {
    this.#onCollection(line);
    const id = Number(/"id":(\d+)[,}]/.exec(line)?.[1]);
    const resolve = this.#waiting.get(id);
    this.#waiting.delete(id);
    resolve?.(line);
  }

  /** Threads have heaps of their own: the first that is heard of is the server's. */
  #onCollection(line: string): void {
    const [, heap, live] = /^\[\d+:(0x[0-9a-f]+)\].* ms: (?:Mark-Compact.*-> ([\d.]+))?/.exec(line) ?? [];
    if (heap === undefined) return;
    this.#heap ??= heap;
    if (live !== undefined && heap === this.#heap) this.#liveHeapMegabytes = Number(live);
  }

  async #earlyEnd(args: readonly string[]): Promise<never> {
    await once(this.#child, "exit");
    throw new Error(`${args.join(" ")} ended before it was ready:\n${this.#log.join("\n")}`);
  }
}

function listeningOrigin(line: string): string | undefined {
  if (!line.includes('"listening"')) return undefined;
  const url = /"url":"([^"]+)"/.exec(line)?.[1];
  return url === undefined ? undefined : new URL(url).origin;
}
