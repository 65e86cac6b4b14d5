import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type Config, DEFAULT_CONFIG } from "../../../../src/config/schema.ts";
import type { Ledger, LedgerEntry } from "../../../../src/governance/ledger/ledger.ts";
import { openStoreAndLedger } from "../../../../src/governance/store/open-governance-store.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { ENTRY, entry } from "./ledger-entry.ts";

export const REFUSED: Partial<LedgerEntry> = {
  outcome: "refused",
  decision: "deny",
  errorKind: "governance_denied",
  rule: "callsPerMinute",
};

export type LedgerSettings = Partial<Config["ledger"]> & { readonly webhook?: string; readonly storeUrl?: string };

export function ledgerConfig(settings: LedgerSettings = {}): Pick<Config, "store" | "ledger" | "alerts"> {
  const { webhook = "", storeUrl = "", ...ledger } = settings;
  return {
    store: { url: storeUrl },
    ledger: { ...DEFAULT_CONFIG.ledger, ...ledger },
    alerts: { ...DEFAULT_CONFIG.alerts, webhook },
  };
}

export function dataFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-ledger-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface OpenedLedger {
  readonly ledger: Ledger;
  readonly log: readonly Record<string, unknown>[];
}

/** A real ledger with what it logs. It closes with the test. */
export async function openTestLedger(folder: string, settings: LedgerSettings = {}): Promise<OpenedLedger> {
  const log: Record<string, unknown>[] = [];
  const logger = createLogger({
    level: "debug",
    format: "json",
    write: (line) => void log.push(JSON.parse(line) as Record<string, unknown>),
  });
  const { ledger } = await openStoreAndLedger({ config: ledgerConfig(settings), dataFolder: folder, logger });
  onTestFinished(() => ledger.close());
  return { ledger, log };
}

/** Appends so many entries at once. */
export async function appendMany(ledger: Ledger, count: number, changes: Partial<LedgerEntry> = {}): Promise<number[]> {
  const rows = Array.from({ length: count }, (_, index) =>
    ledger.append(entry({ time: ENTRY.time + index, args: { index }, ...changes })),
  );
  return (await Promise.all(rows)).map(({ seq }) => seq);
}
