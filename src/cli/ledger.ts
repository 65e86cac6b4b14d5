import { loadConfig } from "../config/load.ts";
import { isOwlError } from "../errors/owl-error.ts";
import { FILTER_NAMES, filterFromText } from "../governance/ledger/filter-from-text.ts";
import { type LedgerLocation, keyFolderOf, openStore } from "../governance/ledger/open-store.ts";
import type { LedgerFilter, LedgerCount } from "../governance/ledger/query.ts";
import type { LedgerReader } from "../governance/ledger/store.ts";
import { type FlagValues, toLoadOptions } from "./config-flags.ts";
import { type CommandCall, UsageError, EXIT } from "./command.ts";
import { isoTime, toReadable, exportRows } from "../governance/ledger/export.ts";
import type { LedgerRow } from "../governance/ledger/row.ts";
import { renderTable } from "./table.ts";
import { jsonText, paint, withoutTerminalControls } from "./text.ts";
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { acknowledgementDraft, OpenLoss } from "../governance/ledger/loss.ts";
import { Anchor } from "../governance/ledger/compare-with-anchor.ts";
import { formatHead, parseHead } from "../governance/ledger/checkpoint.ts";
import { loadLedgerKeys } from "../governance/ledger/keys.ts";
import type { LedgerHead } from "../governance/ledger/ledger.ts";
import type { VerifyReport } from "../governance/ledger/verify.ts";

/** Opens the ledger of the configuration that the flags select, calls `act`, and closes the ledger. */
export async function withLedger<T>(
  flags: FlagValues,
  act: (reader: LedgerReader, place: LedgerLocation) => Promise<T>,
): Promise<T> {
  const { config } = await loadConfig(toLoadOptions(flags));
  const { openReader } = await import("../governance/ledger/open-store.ts");
  const place: LedgerLocation = { config, dataFolder: config.sandbox.root };
  const reader = await openReader(place);
  try {
    return await act(reader, place);
  } finally {
    await reader.close();
  }
}

export function filterFromFlags(flags: FlagValues): LedgerFilter {
  const text = Object.fromEntries(
    FILTER_NAMES.flatMap((name) => (typeof flags[name] === "string" ? [[name, flags[name]]] : [])),
  );
  try {
    return filterFromText(text, Date.now());
  } catch (error) {
    if (isOwlError(error)) throw new UsageError(`--${error.message}`);
    throw error;
  }
}

export function wholeNumber(name: string, value: unknown, max: number): number {
  const text = String(value);
  const number = Number(text);
  if (/^\d{1,15}$/.test(text) && number >= 1 && number <= max) return number;
  throw new UsageError(`${name} ${text}: give a whole number from 1 to ${max}`);
}

const MAX_ROWS = 10_000;
const COLUMNS = ["SEQ", "TIME", "CLIENT", "TOOL", "OUTCOME", "MS", "COST", "RULE", "ARGUMENTS"];

export async function ledgerListCommand({ terminal, flags }: CommandCall): Promise<number> {
  const filter = filterFromFlags(flags);
  const limit = wholeNumber("--limit", flags["limit"], MAX_ROWS);
  const rows = await withLedger(flags, (reader) => reader.list(filter, { limit }));
  if (flags["json"] === true) {
    terminal.out(jsonText({ rows: rows.map(toReadable) }));
    return 0;
  }
  if (rows.length === 0) {
    terminal.err("No call in the ledger fits.\n");
    return 0;
  }
  terminal.out(
    renderTable({ columns: COLUMNS, rows: rows.map(toCells), width: terminal.width, color: terminal.outColor }),
  );
  return 0;
}

function toCells(row: LedgerRow): string[] {
  return [
    String(row.seq),
    isoTime(row.time)
      .replace("T", " ")
      .replace(/\.\d+Z$/, ""),
    row.label === null ? row.principal : `${row.principal} (${row.label})`,
    row.count > 1 ? `${row.name} ×${row.count}` : row.name,
    row.error_kind === null ? row.outcome : `${row.outcome}: ${row.error_kind}`,
    (row.duration_us / 1000).toFixed(1),
    formatCost(row.cost_micros),
    row.rule,
    row.args,
  ];
}

/** Micro-units as units, without trailing zeros: 1500000 is 1.5. */
export function formatCost(micros: number): string {
  return String(micros / 1_000_000);
}

export async function ledgerShowCommand({ terminal, args, flags }: CommandCall): Promise<number> {
  const seq = wholeNumber("row", args[0], Number.MAX_SAFE_INTEGER);
  const row = await withLedger(flags, (reader) => reader.get(seq));
  if (row === undefined) {
    terminal.err(`There is no row ${seq}. Retention may have removed it: owlclaw mcp-server ledger verify\n`);
    return EXIT.failure;
  }
  const readable = toReadable(row);
  if (flags["json"] === true) {
    terminal.out(jsonText(readable));
    return 0;
  }
  const width = Math.max(...Object.keys(readable).map((name) => name.length));
  for (const [name, value] of Object.entries(readable)) {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    const indented = withoutTerminalControls(text).replaceAll("\n", `\n${" ".repeat(width + 2)}`);
    terminal.out(`${paint(name.padEnd(width), "bold", terminal.outColor)}  ${indented}\n`);
  }
  return 0;
}

export async function ledgerExportCommand({ terminal, flags }: CommandCall): Promise<number> {
  const filter = filterFromFlags(flags);
  const format = flags["format"] === "csv" ? "csv" : "jsonl";
  const { output } = flags;
  await withLedger(flags, async (reader) => {
    const pages = exportRows(reader, { format, filter });
    if (typeof output === "string") {
      // The export contains arguments and results of calls, so only its owner may read the file.
      await pipeline(Readable.from(pages), createWriteStream(output, { mode: 0o600 }));
      return;
    }
    for await (const page of pages) {
      terminal.out(page);
      await flushed();
    }
  });
  return 0;
}

/** Waits until stdout is flushed: with a slow consumer, pages would otherwise fill the memory. */
function flushed(): Promise<void> {
  return new Promise((resolve) => process.stdout.write("", () => resolve()));
}

const MAX_NAME_CHARS = 200;

/** Appends the acknowledgement to the chain. Running servers need not be stopped. */
export async function ledgerAcknowledgeCommand({ terminal, args, flags }: CommandCall): Promise<number> {
  const seq = wholeNumber("row", args[0], Number.MAX_SAFE_INTEGER);
  const by = withoutTerminalControls(String(flags["by"])).trim();
  if (by === "" || by.length > MAX_NAME_CHARS)
    throw new UsageError(`--by wants a name of 1 to ${MAX_NAME_CHARS} characters`);
  const { config } = await loadConfig(toLoadOptions(flags));
  const place = { config, dataFolder: config.sandbox.root };
  const { store } = await openStore(place);
  try {
    const row = await store.get(seq);
    if (row?.kind !== "loss")
      throw new UsageError(
        `row ${seq} does not record a loss; \`owlclaw mcp-server ledger verify\` names the row that does`,
      );
    await store.append([acknowledgementDraft({ upTo: seq, by })]);
  } finally {
    await store.close();
  }
  new OpenLoss(keyFolderOf(place)).clear(seq);
  terminal.err(`The loss in row ${seq} is acknowledged by ${by}.\n`);
  return 0;
}

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

function readAnchor(place: LedgerLocation): LedgerHead | undefined {
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

/** Only the verdict at the start of the first line contains colours. */
function withoutTerminalControlsKeepingColor([first = "", ...others]: readonly string[], verdict: string): string {
  const rest = withoutTerminalControls(first.slice(verdict.length));
  return [`${verdict}${rest}`, ...others.map(withoutTerminalControls)].join("\n");
}

/** The table is limited to this number of rows; `--json` prints all. */
const SHOWN = 20;

export async function ledgerStatsCommand({ terminal, flags }: CommandCall): Promise<number> {
  const filter = filterFromFlags(flags);
  const stats = await withLedger(flags, (reader) => reader.stats(filter));
  if (flags["json"] === true) {
    terminal.out(jsonText(stats));
    return 0;
  }
  const table = (title: string, groups: readonly (readonly [string, LedgerCount])[]): string => {
    const columns = [title, "CALLS", "REFUSED", "FAILED", "COST", "SECONDS"];
    const rows = groups.slice(0, SHOWN).map(([key, count]) => [key, ...toCountCells(count)]);
    const more = groups.length > SHOWN ? `… and ${groups.length - SHOWN} more\n` : "";
    return renderTable({ columns, rows, width: terminal.width, color: terminal.outColor }) + more;
  };
  const { total, clients, tools, days } = stats;
  terminal.out(
    [
      table("CLIENT", [["all", total], ...clients.map((count) => [count.client, count] as const)]),
      table(
        "TOOL",
        tools.map((count) => [count.tool, count] as const),
      ),
      table(
        "DAY",
        days.map((count) => [count.day, count] as const),
      ),
    ].join("\n"),
  );
  return 0;
}

function toCountCells({ calls, refused, failed, costMicros, durationMs }: LedgerCount): string[] {
  return [calls, refused, failed, formatCost(costMicros), (durationMs / 1000).toFixed(1)].map(String);
}
