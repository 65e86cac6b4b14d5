import type { LedgerEntry } from "../../../../src/governance/ledger/ledger.ts";

export const ENTRY: LedgerEntry = {
  time: Date.UTC(2026, 6, 28, 12),
  principal: "ada",
  label: undefined,
  transport: "http",
  kind: "tool",
  name: "code_run",
  calledAs: "execute_code",
  args: { code: "print(6*7)" },
  result: { content: [{ type: "text", text: "42" }] },
  outcome: "ok",
  errorKind: undefined,
  decision: "allow",
  rule: "default",
  policyRevision: "rev-1",
  durationMs: 12.5,
  costMicros: 250,
  traceId: "0af7651916cd43dd8448eb211c80319c",
  sandbox: "owl-1",
  flags: [],
};

export function entry(changes: Partial<LedgerEntry> = {}): LedgerEntry {
  return { ...ENTRY, ...changes };
}
