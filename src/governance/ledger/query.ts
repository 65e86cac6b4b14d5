import type { LedgerDecision, LedgerOutcome } from "./ledger.ts";
import { type RowKind, type Value, toText } from "./row.ts";
import { setImmediate } from "node:timers/promises";

export const ROW_KINDS = [
  "tool",
  "resource",
  "prompt",
  "completion",
  "list",
  "task",
  "admin",
  "refusals",
  "checkpoint",
  "cut",
  "loss",
  "acknowledgement",
] as const satisfies readonly RowKind[];

export const OUTCOMES = [
  "ok",
  "refused",
  "failed",
  "cancelled",
  "timeout",
  "suspended",
  "unknown",
] as const satisfies readonly LedgerOutcome[];

export const DECISIONS = ["allow", "deny"] as const satisfies readonly LedgerDecision[];

/** A row must match every field that is set. Without `kind`, the kinds `checkpoint` and `cut` are left out. */
export interface LedgerFilter {
  readonly principal?: string;
  readonly label?: string;
  /** A tool's native name or a URI; `*` and `?` are wildcards. */
  readonly name?: string;
  readonly kind?: RowKind;
  readonly decision?: LedgerDecision;
  readonly outcome?: LedgerOutcome;
  readonly rule?: string;
  readonly traceId?: string;
  readonly sandbox?: string;
  /** Milliseconds since the epoch; `toMs` is exclusive. */
  readonly fromMs?: number;
  readonly toMs?: number;
  /** Occurs in the principal, name, rule, arguments or result; not case-sensitive. The query reads every row. */
  readonly text?: string;
  /** Rows after `afterSeq`, up to and including `throughSeq`. */
  readonly afterSeq?: number;
  readonly throughSeq?: number;
}

export interface Page {
  readonly limit: number;
  /** Continues after this row, in the order of the page. */
  readonly after?: number;
  /** Default: newest. */
  readonly order?: "newest" | "oldest";
}

export interface LedgerCount {
  readonly calls: number;
  readonly refused: number;
  /** Failed, timed out or cancelled. */
  readonly failed: number;
  readonly costMicros: number;
  readonly durationMs: number;
}

export interface LedgerStats {
  readonly total: LedgerCount;
  readonly clients: readonly (LedgerCount & { readonly client: string })[];
  readonly tools: readonly (LedgerCount & { readonly tool: string })[];
  /** Newest first; in UTC unless the query has day shifts. */
  readonly days: readonly (LedgerCount & { readonly day: string })[];
}

/** From `fromMs` on, local time is `shiftMs` ahead of UTC. */
export interface DayShift {
  readonly fromMs: number;
  readonly shiftMs: number;
}

/** Callers choose names, so the number of groups must be limited. */
export const MAX_GROUPS = 1000;

/** The differences between the SQL of the databases. */
export interface SqlDialect {
  /** The placeholder of the nth value, counted from 1. */
  placeholder(position: number): string;
  readonly globOperator: string;
  globPattern(glob: string): string;
  /** Compares case-insensitively. */
  readonly likeOperator: string;
  /** A quotient of whole numbers, rounded down. */
  floor(quotient: string): string;
  /** The day of a time in milliseconds, in UTC, as in 2026-07-28. */
  day(timeMs: string): string;
}

export interface SqlPart {
  readonly sql: string;
  readonly values: Value[];
}

const ALL_KINDS = "kind NOT IN ('checkpoint', 'cut')";
/** The kinds that count as calls: lists, messages to tasks and actions of operators have rows, but are not calls. */
const CALL_KINDS = "kind IN ('tool', 'resource', 'prompt', 'completion', 'refusals')";

function whereClause(filter: LedgerFilter, dialect: SqlDialect, kinds: string = ALL_KINDS): SqlPart {
  const values: Value[] = [];
  const conditions: string[] = [];
  const add = (left: string, value: Value | undefined): void => {
    if (value === undefined) return;
    values.push(value);
    conditions.push(`${left} ${dialect.placeholder(values.length)}`);
  };
  add("principal =", filter.principal);
  add("label =", filter.label);
  if (filter.name !== undefined && /[*?]/.test(filter.name)) {
    add(`name ${dialect.globOperator}`, dialect.globPattern(filter.name));
  } else add("name =", filter.name);
  add("decision =", filter.decision);
  add("outcome =", filter.outcome);
  add("rule =", filter.rule);
  add("trace_id =", filter.traceId);
  add("sandbox =", filter.sandbox);
  add("time >=", filter.fromMs);
  add("time <", filter.toMs);
  add("seq >", filter.afterSeq);
  add("seq <=", filter.throughSeq);
  if (filter.text !== undefined) {
    const everything = "(principal || ' ' || name || ' ' || rule || ' ' || args || ' ' || result)";
    add(`${everything} ${dialect.likeOperator}`, `%${filter.text.replace(/[\\%_]/g, String.raw`\$&`)}%`);
    conditions[conditions.length - 1] += String.raw` ESCAPE '\'`;
  }
  // No server writes a row before the first. The plus sign keeps the database from choosing the index of seq for this
  // condition.
  conditions.push("+seq > 0");
  if (filter.kind === undefined) conditions.push(kinds);
  else add("kind =", filter.kind);
  return { sql: conditions.join(" AND "), values };
}

export function listQuery(columns: string, { filter, page, dialect }: ListQuery): SqlPart {
  const { sql, values } = whereClause(filter, dialect);
  const isOldest = page.order === "oldest";
  const conditions = [sql];
  if (page.after !== undefined) {
    values.push(page.after);
    conditions.push(`seq ${isOldest ? ">" : "<"} ${dialect.placeholder(values.length)}`);
  }
  values.push(page.limit);
  const order = `ORDER BY seq ${isOldest ? "ASC" : "DESC"}`;
  // Selects the numbers first: the index covers their conditions, and only the rows of the page are then read as a
  // whole.
  const seqs = `SELECT seq FROM ledger WHERE ${conditions.join(" AND ")} ${order} LIMIT ${dialect.placeholder(values.length)}`;
  return { sql: `SELECT ${columns} FROM ledger WHERE seq IN (${seqs}) ${order}`, values };
}

interface ListQuery {
  readonly filter: LedgerFilter;
  readonly page: Page;
  readonly dialect: SqlDialect;
}

/** A period that is divided into buckets of equal length. */
export interface TimelineSpan {
  readonly fromMs: number;
  readonly bucketMs: number;
}

/** The calls of one bucket, counted from 0; buckets without calls are left out. */
export interface TimelineCount {
  readonly bucket: number;
  readonly allowed: number;
  readonly refused: number;
  readonly failed: number;
}

export function countQuery(filter: LedgerFilter, dialect: SqlDialect): SqlPart {
  const { sql, values } = whereClause(filter, dialect);
  return { sql: `SELECT COUNT(*) AS calls FROM ledger WHERE ${sql}`, values };
}

export function timelineQuery(filter: LedgerFilter, span: TimelineSpan, dialect: SqlDialect): SqlPart {
  const { sql, values } = whereClause(filter, dialect);
  // Whole numbers of the server: no text of a caller becomes part of the SQL.
  const bucket = dialect.floor(`(time - ${Math.trunc(span.fromMs)}) / ${Math.max(1, Math.trunc(span.bucketMs))}`);
  const part = (condition: string, name: string): string =>
    `COALESCE(SUM(CASE WHEN ${condition} THEN count ELSE 0 END), 0) AS ${name}`;
  const failed = "outcome IN ('failed', 'timeout', 'cancelled')";
  const counts = [
    part(`outcome <> 'refused' AND NOT ${failed}`, "allowed"),
    part("outcome = 'refused'", "refused"),
    part(failed, "failed"),
  ].join(", ");
  return {
    sql: `SELECT ${bucket} AS bucket, ${counts} FROM ledger WHERE ${sql} GROUP BY 1 LIMIT ${MAX_GROUPS}`,
    values,
  };
}

export interface StatsQuery {
  readonly filter: LedgerFilter;
  readonly dialect: SqlDialect;
  /** Oldest first. Without any, days are in UTC. */
  readonly dayShifts: readonly DayShift[];
}

/**
 * Local time as if it were UTC. The shifts are whole numbers of the server: no text of a caller becomes part of the
 * SQL.
 */
function localTime(dayShifts: readonly DayShift[]): string {
  const [first, ...later] = dayShifts.map(({ fromMs, shiftMs }) => [Math.trunc(fromMs), Math.trunc(shiftMs)] as const);
  if (first === undefined) return "time";
  const cases = later.toReversed().map(([fromMs, shiftMs]) => `WHEN time >= ${fromMs} THEN time + (${shiftMs})`);
  const rest = `time + (${first[1]})`;
  return cases.length === 0 ? `(${rest})` : `(CASE ${cases.join(" ")} ELSE ${rest} END)`;
}

export type StatsGroup = "total" | "client" | "tool" | "day";

export function statsQuery(group: StatsGroup, { filter, dialect, dayShifts }: StatsQuery): SqlPart {
  const { sql, values } = whereClause(filter, dialect, CALL_KINDS);
  const key = { total: "''", client: "principal", tool: "name", day: dialect.day(localTime(dayShifts)) }[group];
  const counts = `${key} AS "key", COALESCE(SUM(count), 0) AS calls,
    COALESCE(SUM(CASE WHEN outcome = 'refused' THEN count ELSE 0 END), 0) AS refused,
    COALESCE(SUM(CASE WHEN outcome IN ('failed', 'timeout', 'cancelled') THEN count ELSE 0 END), 0) AS failed,
    COALESCE(SUM(cost_micros), 0) AS "costMicros",
    COALESCE(SUM(CASE WHEN count > 0 THEN duration_us ELSE 0 END), 0) AS "durationUs"`;
  const order = group === "day" ? '"key" DESC' : 'calls DESC, "key"';
  const tail = group === "total" ? "" : ` GROUP BY ${key} ORDER BY ${order} LIMIT ${MAX_GROUPS}`;
  return { sql: `SELECT ${counts} FROM ledger WHERE ${sql}${tail}`, values };
}

type KeyedCount = LedgerCount & { readonly key: string };

/** Databases return sums as numbers, BigInts or strings. */
export function toCount(row: unknown): KeyedCount {
  const value = (name: string): unknown =>
    typeof row === "object" && row !== null ? Reflect.get(row, name) : undefined;
  const amount = (name: string): number => Number(value(name) ?? 0);
  return {
    key: toText(value("key")),
    calls: amount("calls"),
    refused: amount("refused"),
    failed: amount("failed"),
    costMicros: amount("costMicros"),
    durationMs: Math.floor(amount("durationUs") / 1000),
  };
}

export function toTimelineCount(row: unknown): TimelineCount {
  const amount = (name: string): number =>
    Number(typeof row === "object" && row !== null ? (Reflect.get(row, name) ?? 0) : 0);
  return { bucket: amount("bucket"), allowed: amount("allowed"), refused: amount("refused"), failed: amount("failed") };
}

/** Calls and costs of the rows that match the filter: in total, by client, by tool, by day. */
export async function collectStats(
  query: StatsQuery,
  run: (query: SqlPart) => Promise<readonly KeyedCount[]>,
): Promise<LedgerStats> {
  const by = async (group: StatsGroup): Promise<readonly KeyedCount[]> => {
    // Each query reads every row, so other requests get their turn in between.
    await setImmediate();
    return run(statsQuery(group, query));
  };
  const [total] = await by("total");
  const clients = await by("client");
  const tools = await by("tool");
  const days = await by("day");
  return {
    total: withoutKey(total ?? { key: "", calls: 0, refused: 0, failed: 0, costMicros: 0, durationMs: 0 }),
    clients: clients.map((count) => ({ client: count.key, ...withoutKey(count) })),
    tools: tools.map((count) => ({ tool: count.key, ...withoutKey(count) })),
    days: days.map((count) => ({ day: count.key, ...withoutKey(count) })),
  };
}

function withoutKey({ calls, refused, failed, costMicros, durationMs }: KeyedCount): LedgerCount {
  return { calls, refused, failed, costMicros, durationMs };
}
