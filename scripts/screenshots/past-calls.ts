import { DEFAULT_CONFIG } from "../../src/config/schema.ts";
import { openStoreAndLedger } from "../../src/governance/store/open-governance-store.ts";
import type { LedgerEntry } from "../../src/governance/ledger/ledger.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

const DAY_MS = 86_400_000;
const DAYS = 14;
const MORNING_MS = 4 * 3_600_000;
const WORK_MS = 18 * 3_600_000;
const CLIENTS = ["research-agent", "ci-runner", "support-bot"];
const TOOLS = ["code_run", "shell_exec", "file_read", "file_write", "browser_goto"];
const COSTS = [12_000, 4_000, 0, 0, 21_000];

/** Two weeks of calls before the server starts, so that the charts have something to show. They are the same on every run. */
export async function writePastCalls(dataFolder: string): Promise<void> {
  const logger = createLogger({ level: "error", format: "json", write: () => undefined });
  const { ledger } = await openStoreAndLedger({ config: DEFAULT_CONFIG, dataFolder, logger });
  const today = new Date().setUTCHours(0, 0, 0, 0);
  for (let day = DAYS; day >= 0; day -= 1) {
    const count = 60 + Math.round(35 * Math.sin(day * 1.3)) + (DAYS - day) * 4;
    const stepMs = WORK_MS / count;
    const entries = Array.from({ length: count }, (_, index) =>
      pastCall(today - day * DAY_MS + MORNING_MS + Math.round(index * stepMs), day * 131 + index),
    );
    await Promise.all(entries.filter(({ time }) => time < Date.now()).map((entry) => ledger.append(entry)));
  }
  await ledger.close();
}

function pastCall(time: number, number: number): LedgerEntry {
  const which = (number * 7 + (number % 3)) % TOOLS.length;
  const isRefused = number % 97 === 0;
  const hasFailed = !isRefused && number % 17 === 0;
  const name = TOOLS[which] ?? "code_run";
  return {
    time,
    principal: CLIENTS[number % CLIENTS.length] ?? "ci-runner",
    label: undefined,
    transport: "http",
    kind: "tool",
    name,
    calledAs: name,
    args: {},
    result: {},
    outcome: isRefused ? "refused" : hasFailed ? "failed" : "ok",
    errorKind: isRefused ? "governance_denied" : hasFailed ? "execution_failed" : undefined,
    decision: isRefused ? "deny" : "allow",
    rule: isRefused ? "rules.no-rm" : "default",
    policyRevision: "c0ffee123456",
    durationMs: 12 + (number % 90) * 3,
    costMicros: isRefused ? 0 : (COSTS[which] ?? 0),
    traceId: number.toString(16).padStart(32, "0"),
    sandbox: undefined,
    flags: [],
  };
}
