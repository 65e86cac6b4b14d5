import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DEFAULT_CONFIG } from "../src/config/schema.ts";
import { type Ledger, type LedgerEntry, draftFromEntry } from "../src/governance/ledger/ledger.ts";
import { exportRows } from "../src/governance/ledger/export.ts";
import { loadLedgerKeys } from "../src/governance/ledger/keys.ts";
import { openStoreAndLedger } from "../src/governance/store/open-governance-store.ts";
import { SqliteReader } from "../src/governance/ledger/sqlite/reader.ts";
import { SqliteWriter } from "../src/governance/ledger/sqlite/writer.ts";
import { createRedactor } from "../src/telemetry/redact.ts";
import { SILENT_LOGGER } from "../src/telemetry/logger.ts";

export interface LedgerBenchOptions {
  readonly rows: number;
  readonly appends: number;
  /** Empty: SQLite alone. */
  readonly storeUrl: string;
  readonly log: (line: string) => void;
}

interface AppendCost {
  readonly store: string;
  readonly clients: number;
  readonly cpuMicros: number;
  readonly wallMicros: number;
  readonly p50Ms: number;
}

export interface LedgerBenchResult {
  readonly appends: readonly AppendCost[];
  readonly rows: number;
  readonly bytesPerRow: number;
  /** Over all rows. */
  readonly seconds: Readonly<Record<string, number>>;
  readonly cpuSeconds: Readonly<Record<string, number>>;
  readonly rssGrowthMb: Readonly<Record<string, number>>;
}

/** What a row costs, and how long the whole ledger takes to list, add up, verify and export. */
export async function measureLedger(options: LedgerBenchOptions): Promise<LedgerBenchResult> {
  const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-bench-"));
  try {
    const appends: AppendCost[] = [];
    for (const store of ["sqlite", ...(options.storeUrl === "" ? [] : ["postgres"])]) {
      for (const clients of [1, 16, 64]) {
        options.log(`appending to ${store}, ${clients} at a time`);
        appends.push(await measureAppends(path.join(folder, store), store, { ...options, clients }));
      }
    }
    return { appends, ...(await measureReads(path.join(folder, "big"), options)) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function ledgerReport(result: LedgerBenchResult): string {
  const { appends, rows, bytesPerRow, seconds, cpuSeconds, rssGrowthMb } = result;
  const lines = appends.map(
    ({ store, clients, cpuMicros, wallMicros, p50Ms }) =>
      `| ${store} | ${clients} | ${cpuMicros.toFixed(1)} | ${wallMicros.toFixed(1)} | ${p50Ms.toFixed(2)} |`,
  );
  const reads = Object.entries(seconds).map(
    ([what, time]) =>
      `| ${what} | ${time.toFixed(2)} | ${(cpuSeconds[what] ?? 0).toFixed(2)} | ${(rssGrowthMb[what] ?? 0).toFixed(0)} |`,
  );
  return [
    "| store | calls at a time | CPU µs a row | µs a row | p50 ms |\n| --- | --- | --- | --- | --- |",
    ...lines,
    `\n${rows} rows, ${bytesPerRow.toFixed(0)} bytes each\n`,
    "| over all rows | s | CPU s | RSS growth, MiB |\n| --- | --- | --- | --- |",
    ...reads,
  ].join("\n");
}

async function measureAppends(
  dataFolder: string,
  store: string,
  { appends, clients, storeUrl }: LedgerBenchOptions & { readonly clients: number },
): Promise<AppendCost> {
  const config = { ...DEFAULT_CONFIG, store: { url: store === "postgres" ? storeUrl : "" } };
  const { ledger } = await openStoreAndLedger({ config, dataFolder, logger: SILENT_LOGGER });
  await appendAll(ledger, Math.ceil(appends / 4), clients);
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  const times = await appendAll(ledger, appends, clients);
  const wallMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpu);
  await ledger.close();
  times.sort((a, b) => a - b);
  return {
    store,
    clients,
    cpuMicros: (user + system) / appends,
    wallMicros: (wallMs * 1000) / appends,
    p50Ms: times[Math.floor(times.length / 2)] ?? 0,
  };
}

async function appendAll(ledger: Ledger, appends: number, clients: number): Promise<number[]> {
  const times: number[] = [];
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < appends) {
      const entry = sampleEntry(next++);
      const startedAt = performance.now();
      await ledger.append(entry);
      times.push(performance.now() - startedAt);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return times;
}

async function measureReads(
  folder: string,
  { rows, log }: LedgerBenchOptions,
): Promise<Omit<LedgerBenchResult, "appends">> {
  log(`filling a ledger with ${rows} rows`);
  const file = path.join(folder, "ledger.db");
  const keys = loadLedgerKeys({ folder: path.join(folder, "keys"), create: true });
  const writer = new SqliteWriter({ path: file, keys, checkpointEvery: 1000 });
  const redactor = createRedactor();
  for (let at = 0; at < rows; at += 1000) {
    writer.append(Array.from({ length: 1000 }, (_, index) => draftFromEntry(sampleEntry(at + index), redactor)));
  }
  writer.close();
  const reader = new SqliteReader({ path: file, loadKeys: () => keys });
  const middle = START_MS + (rows / 2) * 1000;
  const work: Readonly<Record<string, () => Promise<unknown>>> = {
    "list, newest 50": () => reader.list({}, { limit: 50 }),
    "list, one client": () => reader.list({ principal: "client-7" }, { limit: 50 }),
    "list, nobody": () => reader.list({ principal: "nobody" }, { limit: 50 }),
    "list, half of the time": () => reader.list({ fromMs: middle }, { limit: 50 }),
    "list, a minute": () => reader.list({ fromMs: middle, toMs: middle + 60_000 }, { limit: 50 }),
    "list, one trace": () => reader.list({ traceId: traceId(12_345) }, { limit: 50 }),
    stats: () => reader.stats({}),
    "stats, an hour": () => reader.stats({ fromMs: middle, toMs: middle + 3_600_000 }),
    verify: async () => {
      const { isIntact, problems } = await reader.verify({});
      if (!isIntact) throw new Error(JSON.stringify(problems.slice(0, 3)));
    },
    "export as JSON lines": async () => {
      for await (const page of exportRows(reader, { format: "jsonl", filter: {} })) void page;
    },
  };
  const seconds: Record<string, number> = {};
  const cpuSeconds: Record<string, number> = {};
  const rssGrowthMb: Record<string, number> = {};
  for (const [what, run] of Object.entries(work)) {
    log(what);
    const before = process.memoryUsage.rss();
    const cpu = process.cpuUsage();
    const startedAt = performance.now();
    await run();
    seconds[what] = (performance.now() - startedAt) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    cpuSeconds[what] = (user + system) / 1e6;
    rssGrowthMb[what] = (process.memoryUsage.rss() - before) / 1024 / 1024;
  }
  await reader.close();
  return { rows, bytesPerRow: statSync(file).size / rows, seconds, cpuSeconds, rssGrowthMb };
}

const START_MS = Date.UTC(2026, 0, 1);

function traceId(index: number): string {
  return index.toString(16).padStart(32, "0");
}

/** Rows that differ as real ones do: clients, tools, times, texts of some length. */
function sampleEntry(index: number): LedgerEntry {
  return {
    time: START_MS + index * 1000,
    principal: `client-${index % 50}`,
    label: undefined,
    transport: "http",
    kind: "tool",
    name: `tool_${index % 40}`,
    calledAs: `tool_${index % 40}`,
    args: { code: `import math\nprint(math.sqrt(${index}))`, timeout_seconds: 30 },
    result: { content: [{ type: "text", text: `code_run ok: exit 0 in 12 ms\n{"stdout":"${index}"}` }] },
    outcome: index % 20 === 0 ? "failed" : "ok",
    errorKind: index % 20 === 0 ? "execution_error" : undefined,
    decision: "allow",
    rule: "default",
    policyRevision: "5f0c3a",
    durationMs: 12 + (index % 100),
    costMicros: 100,
    traceId: traceId(index),
    sandbox: `owl-${index % 500}`,
    flags: [],
  };
}
