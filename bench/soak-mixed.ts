import { readdir } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { descendants } from "./process-tree.ts";
import { type SandboxServer, startSandboxServer } from "./sandbox-server.ts";
import type { ServerProcess } from "./server-process.ts";
import { median } from "./statistics.ts";
import { ToolClient } from "./tool-client.ts";

const CLIENTS = 4;
const POOL_SIZE = 2;
/** A pace that leaves the machine idle half of the time: a queue would measure itself. */
const PAUSE_MS = 20;
const CALLS_PER_SANDBOX = 100;
const WINDOW_MS = 60_000;
const MIN_WINDOWS = 5;
/** Sandboxes come and go: one look would see a moment, and not the minute. */
const LOOKS = 12;

/** One stretch of the soak: what its calls took, and how large the server was meanwhile. */
export interface SoakWindow {
  readonly calls: number;
  readonly p50Ms: number;
  readonly cpuMsPerCall: number;
  readonly rssMegabytes: number;
  readonly descriptors: number;
  readonly processes: number;
  /** p99 of how late the event loop was. */
  readonly loopDelayMs: number;
}

export interface MixedSoakOptions {
  readonly minutes: number;
  readonly log: (line: string) => void;
}

/** Handlers, code, commands, files and new sandboxes side by side, for a long time, at a steady pace. */
export async function soakMixed({ minutes, log }: MixedSoakOptions): Promise<readonly SoakWindow[]> {
  const windowMs = Math.min(WINDOW_MS, (minutes * 60_000) / (MIN_WINDOWS + 1));
  const count = Math.max(MIN_WINDOWS, Math.floor((minutes * 60_000) / windowMs) - 1);
  const server = await startSandboxServer(POOL_SIZE);
  const load = startMixedLoad(server.process.origin);
  const { latencies } = load;
  try {
    // The first stretch warms up, and counts for nothing.
    await measureWindow(server, latencies, windowMs);
    const windows: SoakWindow[] = [];
    while (windows.length < count) {
      const window = await Promise.race([measureWindow(server, latencies, windowMs), load.failed]);
      windows.push(window);
      log(`${windows.length} of ${count}: ${describeWindow(window)}`);
    }
    return windows;
  } finally {
    await load.stop();
    await server.stop();
  }
}

export interface MixedLoad {
  /** Of the calls so far. */
  readonly latencies: number[];
  /** Rejects when a client ends by itself: a call that fails is a failure of the whole. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

export function startMixedLoad(origin: string): MixedLoad {
  const stopping = new AbortController();
  const latencies: number[] = [];
  const clients = Array.from({ length: CLIENTS }, () => callUntil(origin, stopping.signal, latencies));
  return {
    latencies,
    failed: failureOf(clients),
    stop: async () => {
      stopping.abort();
      await Promise.allSettled(clients);
    },
  };
}

export function describeWindow(window: SoakWindow): string {
  const { calls, p50Ms, cpuMsPerCall, rssMegabytes, descriptors, processes, loopDelayMs } = window;
  const times = `p50 ${p50Ms.toFixed(2)} ms, ${cpuMsPerCall.toFixed(2)} ms CPU each, loop ${loopDelayMs.toFixed(1)} ms`;
  return `${calls} calls, ${times}, ${rssMegabytes.toFixed(0)} MB, ${descriptors} fds, ${processes} processes`;
}

async function failureOf(clients: readonly Promise<void>[]): Promise<never> {
  await Promise.race(clients);
  // After a stop nobody listens any more.
  throw new Error("a client ended before the soak did");
}

async function measureWindow(server: SandboxServer, latencies: number[], windowMs: number): Promise<SoakWindow> {
  const { process: measured } = server;
  latencies.length = 0;
  await loopDelayMs(measured.origin);
  const cpuBefore = await measured.cpuSeconds();
  const sizes: Size[] = [];
  for (let count = 0; count < LOOKS; count += 1) {
    await delay(windowMs / LOOKS);
    sizes.push(await sizeOf(measured));
  }
  const cpuSeconds = (await measured.cpuSeconds()) - cpuBefore;
  const calls = latencies.length;
  return {
    calls,
    p50Ms: median(latencies),
    cpuMsPerCall: (cpuSeconds * 1000) / calls,
    rssMegabytes: median(sizes.map(({ rssMegabytes }) => rssMegabytes)),
    descriptors: median(sizes.map(({ descriptors }) => descriptors)),
    processes: median(sizes.map(({ processes }) => processes)),
    loopDelayMs: await loopDelayMs(measured.origin),
  };
}

export type Size = Pick<SoakWindow, "rssMegabytes" | "descriptors" | "processes">;

export async function sizeOf(measured: ServerProcess): Promise<Size> {
  return {
    rssMegabytes: await measured.rssMegabytes(),
    descriptors: (await readdir(`/proc/${measured.pid}/fd`)).length,
    processes: (await descendants(measured.pid)).length,
  };
}

/** Since the last time that somebody asked. */
export async function loopDelayMs(origin: string, stat: "p50" | "p99" = "p99"): Promise<number> {
  const text = await (await fetch(new URL("/metrics", origin))).text();
  const line = text.split("\n").find((each) => each.startsWith(`nodejs_eventloop_delay_seconds{stat="${stat}"} `));
  return Number(line?.split(" ")[1]) * 1000;
}

async function callUntil(origin: string, signal: AbortSignal, latencies: number[]): Promise<void> {
  const client = await ToolClient.open(origin);
  try {
    while (!signal.aborted) await useSandbox(client, signal, latencies);
  } finally {
    client.close();
  }
}

async function useSandbox(client: ToolClient, signal: AbortSignal, latencies: number[]): Promise<void> {
  const call = async (
    name: string,
    args: Readonly<Record<string, unknown>>,
  ): Promise<Readonly<Record<string, unknown>>> => {
    const { ms, fields } = await client.call(name, args);
    latencies.push(ms);
    await delay(PAUSE_MS);
    return fields;
  };
  const { session_id } = await call("sandbox_create", {});
  for (let count = 0; count < CALLS_PER_SANDBOX && !signal.aborted; count += 5) {
    await call("echo", { text: `call ${count}` });
    await call("code_run", { code: `count = ${count}; count * 2`, session_id });
    await call("shell_exec", { command: `echo ${count}`, session_id });
    await call("file_write", { path: "f.txt", content: String(count), session_id });
    await call("file_read", { path: "f.txt", session_id });
  }
  await call("sandbox_destroy", { session_id });
}
