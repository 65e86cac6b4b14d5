import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ADMIN_SCOPE } from "../../auth/principal.ts";
import { requireScope } from "../../auth/protected-resource.ts";
import { OwlError } from "../../errors/owl-error.ts";
import { parseHead } from "../../governance/ledger/checkpoint.ts";
import { exportRows, toReadable } from "../../governance/ledger/export.ts";
import { FILTER_NAMES, filterFromText } from "../../governance/ledger/filter-from-text.ts";
import type { Ledger } from "../../governance/ledger/ledger.ts";
import type { LedgerFilter } from "../../governance/ledger/query.ts";
import type { OperatorActs } from "../../call/operator-acts.ts";
import type { LedgerReader } from "../../governance/ledger/store.ts";
import { type HttpExchange, sendJson } from "./exchange-io.ts";
import type { RequestTarget } from "./request-target.ts";

type Serve = (exchange: HttpExchange, target: RequestTarget) => Promise<void>;
type LedgerRoute = readonly [RegExp, { readonly methods: Readonly<Record<string, Serve>> }];

const DEFAULT_ROWS = 50;
const MAX_ROWS = 500;
const NO_STORE = { "cache-control": "no-store" } as const;

/** `/api/ledger`, for operators: list, single row, export, verification. */
export function ledgerRoutes(ledger: Ledger | undefined, acts?: OperatorActs): readonly LedgerRoute[] {
  if (ledger === undefined) return [];
  const { reader } = ledger;
  const route = (path: RegExp, what: "read" | "export" | "verify", serve: Serve): LedgerRoute => {
    const get: Serve = async (exchange, target) => {
      const { principal, traceId } = exchange;
      requireScope(principal, ADMIN_SCOPE);
      const args = { path: target.path, ...Object.fromEntries(new URLSearchParams(target.query)) };
      const act = { by: principal.id, transport: "http", name: `operator.ledger_${what}`, args, traceId } as const;
      await (what === "read" ? acts?.recordRead(act) : acts?.record(act));
      return serve(exchange, target);
    };
    return [path, { methods: { GET: get } }];
  };
  return [
    route(/^\/api\/ledger$/, "read", (exchange, target) => sendList(reader, exchange, target)),
    route(/^\/api\/ledger\/\d{1,15}$/, "read", (exchange, target) => sendRow(reader, exchange, target)),
    route(/^\/api\/ledger\/export$/, "export", (exchange, target) => sendExport(reader, exchange, target)),
    route(/^\/api\/ledger\/verify$/, "verify", (exchange, target) => sendVerification(reader, exchange, target)),
  ];
}

async function sendList(reader: LedgerReader, { response }: HttpExchange, { query }: RequestTarget): Promise<void> {
  const params = new URLSearchParams(query);
  const limit = numberParam(params, "limit", { fallback: DEFAULT_ROWS, max: MAX_ROWS });
  const after = numberParam(params, "after", { fallback: 0, max: Number.MAX_SAFE_INTEGER });
  const rows = await reader.list(filterOf(params), { limit, ...(after === 0 ? {} : { after }) });
  const last = rows.at(-1);
  const next = rows.length === limit && last !== undefined ? { next: last.seq } : {};
  sendJson(response, 200, { rows: rows.map(toReadable), ...next }, NO_STORE);
}

async function sendRow(reader: LedgerReader, { response }: HttpExchange, { path }: RequestTarget): Promise<void> {
  const seq = Number(path.slice(path.lastIndexOf("/") + 1));
  const row = await reader.get(seq);
  if (row === undefined) throw new OwlError("route_not_found", `the ledger has no row ${seq}`);
  sendJson(response, 200, toReadable(row), NO_STORE);
}

async function sendExport(reader: LedgerReader, { response }: HttpExchange, { query }: RequestTarget): Promise<void> {
  const params = new URLSearchParams(query);
  const format = params.get("format") ?? "jsonl";
  if (format !== "jsonl" && format !== "csv") throw new OwlError("invalid_params", "format must be jsonl or csv");
  const pages = exportRows(reader, { format, filter: filterOf(params) });
  // Reads the first page before it sends headers, so that a read error becomes an error response and not an empty file.
  const first = await pages.next();
  response.writeHead(200, {
    ...NO_STORE,
    "content-type": format === "csv" ? "text/csv; charset=utf-8" : "application/x-ndjson",
    "content-disposition": `attachment; filename="ledger.${format}"`,
    "x-content-type-options": "nosniff",
  });
  const all = async function* (): AsyncGenerator<string> {
    if (first.done !== true) yield first.value;
    yield* pages;
  };
  await pipeline(Readable.from(all()), response);
}

async function sendVerification(
  reader: LedgerReader,
  { response }: HttpExchange,
  { query }: RequestTarget,
): Promise<void> {
  const text = new URLSearchParams(query).get("head");
  const head = text === null ? undefined : parseHead(text);
  if (text !== null && head === undefined) throw new OwlError("invalid_params", "head must be number:hash");
  sendJson(response, 200, await reader.verify(head === undefined ? {} : { head }), NO_STORE);
}

function filterOf(params: URLSearchParams): LedgerFilter {
  return filterFromText(
    Object.fromEntries(FILTER_NAMES.map((name) => [name, params.get(name) ?? undefined])),
    Date.now(),
  );
}

function numberParam(
  params: URLSearchParams,
  name: string,
  { fallback, max }: { readonly fallback: number; readonly max: number },
): number {
  const text = params.get(name);
  if (text === null) return fallback;
  const number = Number(text);
  if (/^\d{1,16}$/.test(text) && number >= 1 && number <= max) return number;
  throw new OwlError("invalid_params", `${name} must be a whole number from 1 to ${max}`);
}
