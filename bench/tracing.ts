import { copyFile, cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Plugin } from "esbuild";
import { buildServer } from "../scripts/build-server.mjs";
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

/** The default server three times: built so that nobody is ever asked for a span, with tracing off, and with every call traced. */
export async function measureTracing(options: Omit<ThroughputOptions, "targets">): Promise<readonly CaseResult[]> {
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
    return await measureThroughput({ ...options, targets });
  } finally {
    await collector.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

export function tracingReport(results: readonly CaseResult[]): string {
  const rows = results.map((result) => [
    result.target,
    result.callsPerSecond.toFixed(0),
    result.cpuMicrosPerCall.toFixed(0),
    cpuRatio(results, result.target).toFixed(3),
    result.p50Ms.toFixed(2),
    result.p99Ms.toFixed(2),
  ]);
  return `what tracing costs a governed call\n${toTable(["tracing", "calls/s", "CPU µs/call", "ratio", "p50 ms", "p99 ms"], rows)}`;
}

export function checkTracingGoals(results: readonly CaseResult[]): readonly Goal[] {
  return [atMost("tracing off against none of it: CPU of a call", cpuRatio(results, OFF), MAX_OFF_RATIO)];
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
