import { OwlError } from "../errors/owl-error.ts";
import { exportRows, isoTime, toReadable } from "../governance/ledger/export.ts";
import { FILTER_NAMES, filterFromText } from "../governance/ledger/filter-from-text.ts";
import type { Ledger } from "../governance/ledger/ledger.ts";
import type { OperatorAct } from "../call/operator-acts.ts";
import type { LedgerFilter, Page } from "../governance/ledger/query.ts";
import type { LedgerRow } from "../governance/ledger/row.ts";
import { type ApiRoute, Attachment } from "./api.ts";
import type { LedgerDetail, LedgerLine, LedgerPage, LedgerTimeline, LedgerVerification } from "./contract.ts";
import { numberOf } from "./request-body.ts";
import type { RecentStages } from "./recent-stages.ts";
import type { LedgerReader } from "../governance/ledger/store.ts";

const DEFAULT_ROWS = 100;
const MAX_ROWS = 500;
/** A text search ends after this many windows, with or without a match. */
const MAX_WINDOWS = 5;
const MAX_TEXT_CHARS = 200;
const DEFAULT_BUCKETS = 60;
const MAX_BUCKETS = 500;
const DAY_MS = 86_400_000;
const READ = "operator.ledger_read";
/** The timeline of a text search counts only this many of the newest rows. */
const COUNTED_ROWS = 50_000;

export interface LedgerSources {
  readonly reader: Reader;
  readonly stages: RecentStages;
  /** Rejects when the act cannot be recorded. The request then fails. */
  readonly record: (act: Act) => Promise<void>;
  /** The same, limited to one record a minute. */
  readonly recordRead: (act: Act) => Promise<void>;
}

type Act = Pick<OperatorAct, "by" | "name" | "args">;

/** `ledger…`: pages, single rows, export and verification. Exports and verifications are recorded in the ledger. */
export function ledgerRoutes({ reader, stages, record, recordRead }: LedgerSources): readonly ApiRoute[] {
  return [
    {
      method: "GET",
      path: "ledger",
      answer: async ({ operator, query }) => {
        await recordRead({ by: operator.id, name: READ, args: Object.fromEntries(query) });
        return { ...(await pageOf(reader, query)) };
      },
    },
    { method: "GET", path: "ledger/timeline", answer: async ({ query }) => ({ ...(await timelineOf(reader, query)) }) },
    {
      method: "GET",
      path: "ledger/export",
      answer: async ({ operator, query }) => {
        const attachment = exportOf(reader, query);
        await record({ by: operator.id, name: "operator.ledger_export", args: Object.fromEntries(query) });
        return attachment;
      },
    },
    {
      method: "POST",
      path: "ledger/verify",
      answer: async ({ operator }) => {
        await record({ by: operator.id, name: "operator.ledger_verify", args: {} });
        return { ...(await verificationOf(reader)) };
      },
    },
    {
      method: "GET",
      path: "ledger/{seq}",
      answer: async ({ operator, parts: [seq = ""] }) => {
        await recordRead({ by: operator.id, name: READ, args: { seq } });
        return { ...(await detailOf(reader, stages, seq)) };
      },
    },
  ];
}

type Reader = Ledger["reader"];

async function pageOf(reader: Reader, query: URLSearchParams): Promise<LedgerPage> {
  const filter = filterOf(query);
  const limit = numberOf(query, "limit", { fallback: DEFAULT_ROWS, max: MAX_ROWS });
  const before = numberOf(query, "before", { fallback: 0, max: Number.MAX_SAFE_INTEGER });
  const after = numberOf(query, "after", { fallback: 0, max: Number.MAX_SAFE_INTEGER });
  if (query.has("after")) {
    const { rows, through } = await searchNewer(reader, filter, { limit, after, maxWindows: MAX_WINDOWS });
    return { rows: rows.toReversed().map(toLine), more: true, newest: through };
  }
  const isFirst = before === 0;
  const head = isFirst ? (await reader.head()).seq : 0;
  const found = await searchLedger(reader, filter, {
    limit,
    before: isFirst ? undefined : before,
    maxWindows: MAX_WINDOWS,
  });
  return {
    rows: found.rows.map(toLine),
    more: found.next !== undefined,
    ...(found.next !== undefined && { next: found.next }),
    ...(isFirst && { newest: Math.max(head, found.rows[0]?.seq ?? 0) }),
    // Counting takes longer than reading a page. It is done for the first page only, and not for text searches, which
    // have no index.
    ...(isFirst && filter.text === undefined && { total: await reader.count(filter) }),
  };
}

async function timelineOf(reader: Reader, query: URLSearchParams): Promise<LedgerTimeline> {
  const filter = filterOf(query);
  const buckets = numberOf(query, "buckets", { fallback: DEFAULT_BUCKETS, max: MAX_BUCKETS });
  const toMs = filter.toMs ?? Date.now();
  const fromMs = Math.min(filter.fromMs ?? toMs - DAY_MS, toMs - 1);
  const bucketMs = Math.max(1, Math.ceil((toMs - fromMs) / buckets));
  const newest = filter.text === undefined ? {} : { afterSeq: Math.max(0, (await reader.head()).seq - COUNTED_ROWS) };
  const counts = await reader.timeline({ ...filter, ...newest, fromMs, toMs }, { fromMs, bucketMs });
  const byBucket = new Map(counts.map((count) => [count.bucket, count]));
  return {
    from: isoTime(fromMs),
    to: isoTime(toMs),
    bucketMs,
    buckets: Array.from({ length: buckets }, (_, index) => {
      const { allowed, refused, failed } = byBucket.get(index) ?? { allowed: 0, refused: 0, failed: 0 };
      return { start: isoTime(fromMs + index * bucketMs), allowed, refused, failed };
    }),
  };
}

async function detailOf(reader: Reader, recent: RecentStages, text: string): Promise<LedgerDetail> {
  const seq = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  const [row, previous] = await Promise.all([reader.get(seq), reader.get(seq - 1)]);
  if (row === undefined) throw new OwlError("route_not_found", `the ledger has no row ${seq}`);
  const { args, result, flags } = toReadable(row);
  const stages = recent.of(row.trace_id, row.time);
  return {
    ...toLine(row),
    calledAs: row.called_as,
    args,
    result,
    policyRevision: row.policy_revision,
    flags: Array.isArray(flags) ? flags.map(String) : [],
    hash: row.hash,
    previousHash: previous?.hash ?? null,
    ...(stages !== undefined && { stages }),
  };
}

function exportOf(reader: Reader, query: URLSearchParams): Attachment {
  const format = query.get("format") === "csv" ? "csv" : "jsonl";
  return new Attachment({
    name: format === "csv" ? "ledger.csv" : "ledger.jsonl",
    type: format === "csv" ? "text/csv; charset=utf-8" : "application/x-ndjson",
    chunks: exportRows(listForward(reader), { format, filter: filterOf(query) }),
  });
}

async function verificationOf(reader: Reader): Promise<LedgerVerification> {
  const { isIntact, rows, problems } = await reader.verify({});
  const [first] = problems;
  return { ok: isIntact, rows, ...(first !== undefined && { problem: `row ${first.seq}: ${first.detail}` }) };
}

function filterOf(query: URLSearchParams): LedgerFilter {
  const named = Object.fromEntries(FILTER_NAMES.map((name) => [name, query.get(name) || undefined]));
  const text = query.get("text")?.slice(0, MAX_TEXT_CHARS) ?? "";
  return { ...filterFromText(named, Date.now()), ...(text !== "" && { text }) };
}

function toLine(row: LedgerRow): LedgerLine {
  return {
    seq: row.seq,
    time: isoTime(row.time),
    client: row.principal,
    label: row.label,
    transport: row.transport,
    kind: row.kind,
    tool: row.name,
    decision: row.decision,
    rule: row.rule,
    outcome: row.outcome,
    errorKind: row.error_kind,
    durationMs: row.duration_us / 1000,
    costMicros: row.cost_micros,
    sandbox: row.sandbox,
    traceId: row.trace_id,
    count: row.count,
  };
}

/** The number of rows that one query of a text search reads, so that other queries do not wait long. */
const WINDOW_ROWS = 20_000;

export interface Found {
  readonly rows: readonly LedgerRow[];
  /** The `before` of the next page, when rows remain. */
  readonly next: number | undefined;
}

/**
 * Lists rows below `before`, newest first. Texts have no index, so the search reads window by window. After
 * `maxWindows` it returns `next` to continue.
 */
export async function searchLedger(
  reader: Pick<LedgerReader, "list" | "head">,
  filter: LedgerFilter,
  {
    limit,
    before,
    maxWindows,
  }: { readonly limit: number; readonly before: number | undefined; readonly maxWindows: number },
): Promise<Found> {
  if (filter.text === undefined) {
    const rows = await reader.list(filter, { limit, ...(before !== undefined && { after: before }) });
    return { rows, next: rows.length < limit ? undefined : rows.at(-1)?.seq };
  }
  const rows: LedgerRow[] = [];
  let top = before ?? (await reader.head()).seq + 1;
  for (let windows = 0; top > 1 && windows < maxWindows; windows += 1) {
    const afterSeq = Math.max(0, top - 1 - WINDOW_ROWS);
    const page: Page = { limit: limit - rows.length, after: top };
    rows.push(...(await reader.list({ ...filter, afterSeq }, page)));
    if (rows.length >= limit) return { rows, next: rows.at(-1)?.seq };
    top = afterSeq + 1;
  }
  return { rows, next: top > 1 ? top : undefined };
}

/**
 * Lists the oldest rows above `after`. Searches at most `maxWindows` windows, and returns the last row that it
 * searched.
 */
export async function searchNewer(
  reader: Pick<LedgerReader, "list" | "head">,
  filter: LedgerFilter,
  { limit, after, maxWindows }: { readonly limit: number; readonly after: number; readonly maxWindows: number },
): Promise<{ readonly rows: readonly LedgerRow[]; readonly through: number }> {
  const { seq: last } = await reader.head();
  const rows: LedgerRow[] = [];
  let through = after;
  for (let windows = 0; through < last && windows < maxWindows; windows += 1) {
    const throughSeq = filter.text === undefined ? last : Math.min(last, through + WINDOW_ROWS);
    const page: Page = { limit: limit - rows.length, after: through, order: "oldest" };
    rows.push(...(await reader.list({ ...filter, throughSeq }, page)));
    if (rows.length >= limit) return { rows, through: rows.at(-1)?.seq ?? throughSeq };
    through = throughSeq;
  }
  return { rows, through };
}

/** Lists forward without a window limit, for exports: reads windows until one contains a row. */
export function listForward(reader: Pick<LedgerReader, "list" | "head">): Pick<LedgerReader, "list"> {
  return {
    async list(filter, page) {
      if (filter.text === undefined) return reader.list(filter, page);
      const { seq: last } = await reader.head();
      for (let after = page.after ?? 0; after < last; after += WINDOW_ROWS) {
        const rows = await reader.list({ ...filter, throughSeq: after + WINDOW_ROWS }, { ...page, after });
        if (rows.length > 0) return rows;
      }
      return [];
    },
  };
}
