import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { Duplex, Readable, Writable } from "node:stream";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { describeProcesses, processesWithMarker } from "./descendants.ts";
import type { Launcher, LaunchOptions, OutputPipe, RunningProcess } from "./running-process.ts";

const MARKER_NAME = "OWLCLAW_PROCESS";
const QUIET_MS = 20;
const GONE_POLL_MS = 50;
const END_ROUNDS = 200;

/**
 * Starts programs when there is no Python for subreapers. Descendants are found by a marker in their environment, so a process
 * that clears its environment is not found.
 */
export class UnsupervisedLauncher implements Launcher {
  readonly #markers = new Set<string>();
  readonly #dataBytes: number | undefined;

  /** What a program other than Node may allocate; absent: as much as the guest. */
  constructor(dataBytes?: number) {
    this.#dataBytes = dataBytes;
  }

  async launch(options: LaunchOptions): Promise<RunningProcess> {
    const marker = `${MARKER_NAME}=${randomUUID()}`;
    const [program = "", ...args] = options.isNode === true ? options.argv : this.#limited(options.argv);
    const isChannel = options.stdin === "channel";
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: { ...options.env, [MARKER_NAME]: marker.slice(MARKER_NAME.length + 1) },
      detached: true,
      stdio: [options.stdin === "pipe" ? "pipe" : "ignore", "pipe", "pipe", ...(isChannel ? channelPipes() : [])],
    });
    await once(child, "spawn");
    this.#markers.add(marker);
    const exited = once(child, "exit").then(([code, signal]) => ({ code: toCode(code), signal: toSignal(signal) }));
    const gone = exited.then(() => waitUntilGone(marker)).finally(() => this.#markers.delete(marker));
    const pid = child.pid ?? -1;
    return {
      pid,
      stdout: new StreamOutput(child.stdout),
      stderr: new StreamOutput(child.stderr),
      input: writable(isChannel ? child.stdio[3] : child.stdin),
      answers: isChannel ? readable(child) : undefined,
      exited,
      gone,
      signal: (name) => signalAll(marker, name),
      end: () => endAll(marker),
      descendants: () => describeProcesses(processesWithMarker(marker).filter((found) => found !== pid)),
      release: () => {},
    };
  }

  close(): void {
    for (const marker of this.#markers) signalAll(marker, "SIGKILL");
  }

  #limited(argv: readonly string[]): readonly string[] {
    return this.#dataBytes === undefined ? argv : ["/usr/bin/prlimit", `--data=${this.#dataBytes}:`, "--", ...argv];
  }
}

class StreamOutput implements OutputPipe {
  #listener: (chunk: Buffer) => void = () => {};
  #isEnded = false;
  #lastDataMs = 0;

  constructor(stream: Readable | null) {
    stream?.on("data", (chunk: Buffer) => {
      this.#lastDataMs = Date.now();
      this.#listener(chunk);
    });
    stream?.on("close", () => {
      this.#isEnded = true;
    });
  }

  onData(listener: (chunk: Buffer) => void): void {
    this.#listener = listener;
  }

  async drain(): Promise<void> {
    const startMs = Date.now();
    while (!this.#isEnded && Date.now() - Math.max(startMs, this.#lastDataMs) < QUIET_MS) await delay(QUIET_MS / 4);
  }
}

function channelPipes(): ["pipe", "pipe"] {
  return ["pipe", "pipe"];
}

function writable(stream: unknown): Writable {
  const found = stream instanceof Writable ? stream : new Writable({ write: (_chunk, _encoding, done) => done() });
  return found.on("error", () => found.destroy());
}

function readable(child: ChildProcess): Readable {
  const stream = child.stdio[4];
  if (!(stream instanceof Readable || stream instanceof Duplex)) throw new Error("the process has no channel");
  return stream.on("error", () => stream.destroy());
}

async function endAll(marker: string): Promise<void> {
  for (let round = 0; round < END_ROUNDS; round += 1) {
    if (describeProcesses(processesWithMarker(marker)).length === 0) return;
    signalAll(marker, "SIGKILL");
    await delay(1);
  }
}

function signalAll(marker: string, signal: NodeJS.Signals): void {
  for (const pid of processesWithMarker(marker)) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has exited.
    }
  }
}

async function waitUntilGone(marker: string): Promise<void> {
  while (processesWithMarker(marker).length > 0) await delay(GONE_POLL_MS, undefined, { ref: false });
}

function toCode(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function toSignal(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
