import { Anchor } from "../governance/ledger/anchor.ts";
import { formatHead, parseHead } from "../governance/ledger/checkpoint.ts";
import { loadLedgerKeys } from "../governance/ledger/keys.ts";
import type { LedgerHead } from "../governance/ledger/ledger.ts";
import { keyFolderOf, type LedgerPlace } from "../governance/ledger/open-store.ts";
import type { VerifyReport } from "../governance/ledger/verify.ts";
import type { CommandCall } from "./command-action.ts";
import { EXIT } from "./exit-code.ts";
import { withLedger } from "./ledger-reader.ts";
import { jsonText, paint, withoutTerminalControls } from "./text.ts";
import { UsageError } from "./usage-error.ts";

export async function ledgerVerifyCommand({ terminal, flags }: CommandCall): Promise<number> {
  const head = headFromFlag(flags["head"]);
  const report = await withLedger(flags, (reader, place) => {
    const anchor = readAnchor(place);
    return reader.verify({ ...(head === undefined ? {} : { head }), ...(anchor === undefined ? {} : { anchor }) });
  });
  if (flags["json"] === true) terminal.out(jsonText(report));
  else terminal.out(describe(report, terminal.outColor));
  return report.isIntact ? EXIT.ok : EXIT.failure;
}

function readAnchor(place: LedgerPlace): LedgerHead | undefined {
  const folder = keyFolderOf(place);
  return new Anchor(folder, loadLedgerKeys({ folder, create: false })).read();
}

function headFromFlag(value: unknown): LedgerHead | undefined {
  if (value === undefined) return undefined;
  const head = typeof value === "string" ? parseHead(value) : undefined;
  if (head === undefined) throw new UsageError('--head wants number:hash, as the log line "ledger head" shows it');
  return head;
}

function describe(report: VerifyReport, color: boolean): string {
  const { problems, problemCount, removed } = report;
  const verdict = report.isIntact ? paint("intact", "green", color) : paint("NOT intact", "red", color);
  const lines = [
    `${verdict}: ${report.rows} rows, ${report.checkpoints} of them signed checkpoints`,
    `head: ${formatHead(report.head)}`,
  ];
  if (removed !== undefined)
    lines.push(`rows ${removed.from} to ${removed.to} were removed by retention, as signed for`);
  for (const { seq, by } of report.acknowledged) lines.push(`row ${seq}: rows were lost, which ${by} has acknowledged`);
  for (const { seq, fault, detail } of problems)
    lines.push(`${seq === 0 ? "ledger" : `row ${seq}`}: ${fault}: ${detail}`);
  if (problemCount > problems.length) lines.push(`… and ${problemCount - problems.length} more`);
  return `${withoutTerminalControlsKeepingColor(lines, verdict)}\n`;
}

/** Only the first line holds colours of our own. */
function withoutTerminalControlsKeepingColor([first = "", ...others]: readonly string[], verdict: string): string {
  const rest = withoutTerminalControls(first.slice(verdict.length));
  return [`${verdict}${rest}`, ...others.map(withoutTerminalControls)].join("\n");
}
