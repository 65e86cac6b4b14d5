import { copyFile, cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Plugin } from "esbuild";
import { buildServer } from "../scripts/build-server.mjs";
import { activeSpan } from "../src/telemetry/tracing/active-span.ts";
import { atMost, type Goal, toTable } from "./report.ts";
import { ServerProcess } from "./server-process.ts";
import { median } from "./statistics.ts";
import { MAIN, type Target } from "./targets.ts";
import { type CaseResult, measureThroughput, type ThroughputOptions } from "./throughput.ts";

const ROOT = path.join(import.meta.dirname, "..");
/** It runs under the name `dist`, as every build does. */
const UNTRACED_BUILD = path.join(ROOT, ".cache/bench/untraced/dist");
const COLLECTOR = path.join(import.meta.dirname, "peers/collector.mjs");

const WITHOUT = "without tracing";
const OFF = "off";
const ON = "on";
/** What two runs of the same server differ by. */
const MAX_OFF_RATIO = 1.03;
const LOOKS = 20_000_000;
const TRIES = 7;
/** A call looks for its span some twenty times: together a microsecond, of hundreds that it takes. */
const MAX_LOOK_NS = 50;

export interface TracingResults {
  readonly results: readonly CaseResult[];
  /** What it costs to find out that there is no span, since nobody traces. */
  readonly lookNs: number;
}

/** The default server three times: built so that nobody is ever asked for a span, with tracing off, and with every call traced. */
export async function measureTracing(options: Omit<ThroughputOptions, "targets">): Promise<TracingResults> {
  await buildUntraced();
  const folder = await mkdtemp(path.join(tmpdir(), "owlclaw-bench-tracing-"));
  const collector = await ServerProcess.startHttp([COLLECTOR]);
  try {
    const silent = await writeConfig(folder, { sandbox: { enabled: false } });
    const traced = await writeConfig(folder, { telemetry: { otlp: { endpoint: collector.origin } } });
    const targets = [
      target(WITHOUT, path.join(UNTRACED_BUILD, "main.js"), silent),
      target(OFF, MAIN, silent),
      target(ON, MAIN, traced),
    ];
    return { results: await measureThroughput({ ...options, targets }), lookNs: measureLook() };
  } finally {
    await collector.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

export function tracingReport({ results, lookNs }: TracingResults): string {
  const rows = results.map((result) => [
    result.target,
    result.callsPerSecond.toFixed(0),
    result.cpuMicrosPerCall.toFixed(0),
    cpuRatio(results, result.target).toFixed(3),
    result.p50Ms.toFixed(2),
    result.p99Ms.toFixed(2),
  ]);
  const table = toTable(["tracing", "calls/s", "CPU µs/call", "ratio", "p50 ms", "p99 ms"], rows);
  return `what tracing costs a governed call\n${table}\n\na look for the span while nobody traces: ${lookNs.toFixed(1)} ns`;
}

export function checkTracingGoals({ results, lookNs }: TracingResults): readonly Goal[] {
  return [
    atMost("tracing off against none of it: CPU of a call", cpuRatio(results, OFF), MAX_OFF_RATIO),
    atMost("a look for the span while nobody traces, ns", lookNs, MAX_LOOK_NS),
  ];
}

/** The best of several tries: whatever disturbs one makes it longer. */
function measureLook(): number {
  let found = 0;
  const tries = Array.from({ length: TRIES }, () => {
    const startMs = performance.now();
    for (let look = 0; look < LOOKS; look += 1) if (activeSpan() !== undefined) found += 1;
    return ((performance.now() - startMs) * 1e6) / LOOKS;
  });
  if (found > 0) throw new Error("somebody traces the benchmark");
  return Math.min(...tries);
}

/** Of rounds that followed each other, so that what the machine does meanwhile hits both. */
function cpuRatio(results: readonly CaseResult[], name: string): number {
  const [base, other] = [WITHOUT, name].map(
    (each) => results.find(({ target: found }) => found === each)?.rounds ?? [],
  );
  return median(
    (other ?? []).map(
      ({ cpuMicrosPerCall }, round) => cpuMicrosPerCall / (base?.[round]?.cpuMicrosPerCall ?? Number.NaN),
    ),
  );
}

function target(name: string, main: string, config: string): Target {
  const args = [main, "mcp-server", "start", "--transport", "http", "--port", "0", "--config", config];
  return { name, doors: ["http-2026"], args };
}

/** JSON is YAML. */
async function writeConfig(folder: string, settings: Readonly<Record<string, unknown>>): Promise<string> {
  const file = path.join(folder, `${"telemetry" in settings ? ON : OFF}.yaml`);
  const handlers = { paths: [path.join(import.meta.dirname, "handlers/*.ts")] };
  const governance = { defaults: { callsPerMinute: 1e9, callsPerDay: 1e9, concurrency: 10_000 } };
  await writeFile(file, JSON.stringify({ handlers, governance, sandbox: { enabled: false }, ...settings }));
  return file;
}

async function buildUntraced(): Promise<void> {
  await rm(UNTRACED_BUILD, { recursive: true, force: true });
  await buildServer(ROOT, UNTRACED_BUILD, { plugins: [ASKS_NOBODY] });
  await cp(path.join(ROOT, "dist/guest"), path.join(UNTRACED_BUILD, "guest"), { recursive: true });
  await copyFile(path.join(ROOT, "package.json"), path.join(UNTRACED_BUILD, "../package.json"));
}

const STORAGE = "new AsyncLocalStorage<Span | undefined>()";

/** Whoever asks for the span at hand is told that there is none, and nobody looks for one. */
const ASKS_NOBODY: Plugin = {
  name: "asks-nobody",
  setup(bundle) {
    bundle.onLoad({ filter: /tracing\/active-span\.ts$/ }, async ({ path: file }) => {
      const text = await readFile(file, "utf8");
      if (!text.includes(STORAGE))
        throw new Error(`${file} keeps the span at hand in another way than the benchmark knows`);
      const nobody = "{ getStore: () => undefined, run: (_span: unknown, run: () => never) => run() }";
      return { contents: text.replace(STORAGE, nobody), loader: "ts" };
    });
  },
};
