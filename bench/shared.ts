import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { startPostgres } from "../test/services/postgres.ts";
import { atMost, type Goal, MAX_GOVERNANCE_CPU_MICROS, MAX_GOVERNANCE_MS, toTable } from "./report.ts";
import { MAIN, type Target, TARGETS } from "./targets.ts";
import { type CaseResult, measureThroughput, type ThroughputOptions } from "./throughput.ts";

export interface SharedResults {
  readonly results: readonly CaseResult[];
}

const UNGOVERNED = "owlclaw-ungoverned";
const SQLITE = "on SQLite";
const POSTGRES = "on PostgreSQL";
/** The extra over an ungoverned call, against what it may be on SQLite and against what it is there. */
const MAX_RATIO = 3;

/** Everything that governance counts, and prices that no benchmark can pay off. */
const GOVERNANCE = {
  defaults: { callsPerMinute: 1e9, callsPerDay: 1e9, concurrency: 10_000, monthlyBudget: 1e9 },
  tools: { "*": { cost: 0.000_001 } },
};

/** The same governed call in each of the places where servers can count and record, beside the ungoverned one. */
export async function measureShared(options: Omit<ThroughputOptions, "targets">): Promise<SharedResults> {
  // On a real disk, as SQLite is: what a commit waits for is a part of what is measured.
  const postgres = await startPostgres(tmpdir());
  const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-bench-shared-"));
  const store = { url: postgres.url };
  // JSON is YAML. Keys of a ledger fit one ledger: each store has its own.
  const target = (name: string, shared: Readonly<Record<string, unknown>>): Target => {
    const file = path.join(folder, `${name.replaceAll(" ", "-")}.yaml`);
    const handlers = { paths: [path.join(import.meta.dirname, "handlers/*.ts")] };
    const ledger = { keyFolder: path.join(folder, "store" in shared ? "shared-keys" : "keys") };
    writeFileSync(
      file,
      JSON.stringify({ handlers, ledger, sandbox: { enabled: false }, governance: GOVERNANCE, ...shared }),
    );
    const args = [MAIN, "mcp-server", "start", "--transport", "http", "--port", "0", "--config", file];
    return { name, doors: ["http-2026"], args };
  };
  const ungoverned = TARGETS.filter(({ name }) => name === UNGOVERNED);
  try {
    const targets = [
      ...ungoverned.map((each): Target => ({ ...each, doors: ["http-2026"] })),
      target(SQLITE, {}),
      target(POSTGRES, { store }),
    ];
    return { results: await measureThroughput({ ...options, targets }) };
  } finally {
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

export function sharedReport({ results }: SharedResults): string {
  const base = find(results, UNGOVERNED);
  const head = ["governed call", "calls/s", "CPU µs/call", "extra", "p50 ms", "extra", "p99 ms"];
  const rows = results.map((result) => [
    result.target,
    result.callsPerSecond.toFixed(0),
    result.cpuMicrosPerCall.toFixed(0),
    (result.cpuMicrosPerCall - (base?.cpuMicrosPerCall ?? Number.NaN)).toFixed(0),
    result.p50Ms.toFixed(2),
    (result.p50Ms - (base?.p50Ms ?? Number.NaN)).toFixed(2),
    result.p99Ms.toFixed(2),
  ]);
  return `what governance costs where several servers share it (CPU of the server, not of the databases)\n${toTable(head, rows)}`;
}

export function checkSharedGoals({ results }: SharedResults): readonly Goal[] {
  const [base, alone, shared] = [UNGOVERNED, SQLITE, POSTGRES].map((name) => find(results, name));
  if (base === undefined || alone === undefined || shared === undefined) return [];
  const measures = [
    { name: "CPU µs", field: "cpuMicrosPerCall", allowed: MAX_GOVERNANCE_CPU_MICROS },
    { name: "p50 ms", field: "p50Ms", allowed: MAX_GOVERNANCE_MS },
  ] as const;
  return measures.flatMap(({ name, field, allowed }) => {
    const extra = shared[field] - base[field];
    return [
      atMost(`extra ${name} ${POSTGRES}`, extra, MAX_RATIO * allowed),
      atMost(`the same against ${SQLITE}`, extra / (alone[field] - base[field]), MAX_RATIO),
    ];
  });
}

function find(results: readonly CaseResult[], name: string): CaseResult | undefined {
  return results.find(({ target }) => target === name);
}
