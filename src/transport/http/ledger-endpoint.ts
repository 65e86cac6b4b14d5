import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { OwlError } from "../../errors/owl-error.ts";
import { parseHead } from "../../governance/ledger/checkpoint.ts";
import { exportRows, toReadable } from "../../governance/ledger/export.ts";
import { FILTER_NAMES, filterFromText } from "../../governance/ledger/filter-from-text.ts";
import type { Ledger } from "../../governance/ledger/ledger.ts";
import type { LedgerFilter } from "../../governance/ledger/query.ts";
import type { OperatorActs } from "../../call/operator-acts.ts";
import type { LedgerReader } from "../../governance/ledger/store.ts";
import { type HttpExchange, sendJson } from "./exchange-io.ts";
import type { RouteRequest } from "./route-table.ts";

const DEFAULT_ROWS = 50;
const MAX_ROWS = 500;
const SEQ = /^\d{1,15}$/;
const NO_STORE = { "cache-control": "no-store" } as const;

export interface LedgerEndpointOptions {
  readonly ledger: Pick<Ledger, "reader">;
  readonly acts?: OperatorActs | undefined;
}

/** The ledger for operators. What they read is recorded. */
export class LedgerEndpoint {
  readonly #options: LedgerEndpointOptions;

  constructor(options: LedgerEndpointOptions) {
    this.#options = options;
  }

  async list(exchange: HttpExchange, request: RouteRequest): Promise<void> {
    await this.#record("read", exchange, request);
    await sendList(this.#reader, exchange, request);
  }

  async row(exchange: HttpExchange, request: RouteRequest): Promise<void> {
    await this.#record("read", exchange, request);
    await sendRow(this.#reader, exchange, request);
  }

  async export(exchange: HttpExchange, request: RouteRequest): Promise<void> {
    await this.#record("export", exchange, request);
    await sendExport(this.#reader, exchange, request);
  }

  async verify(exchange: HttpExchange, request: RouteRequest): Promise<void> {
    await this.#record("verify", exchange, request);
    await sendVerification(this.#reader, exchange, request);
  }

  get #reader(): LedgerReader {
    return this.#options.ledger.reader;
  }

  async #record(
    what: "read" | "export" | "verify",
    { principal, traceId }: HttpExchange,
    { path, query }: RouteRequest,
  ): Promise<void> {
    const { acts } = this.#options;
    const args = { path, ...Object.fromEntries(new URLSearchParams(query)) };
    const act = { by: principal.id, transport: "http", name: `operator.ledger_${what}`, args, traceId } as const;
    await (what === "read" ? acts?.recordRead(act) : acts?.record(act));
  }
}

async function sendList(reader: LedgerReader, { response }: HttpExchange, { query }: RouteRequest): Promise<void> {
  const params = new URLSearchParams(query);
  const limit = numberParam(params, "limit", { fallback: DEFAULT_ROWS, max: MAX_ROWS });
  const after = numberParam(params, "after", { fallback: 0, max: Number.MAX_SAFE_INTEGER });
  const rows = await reader.list(filterOf(params), { limit, ...(after === 0 ? {} : { after }) });
  const last = rows.at(-1);
  const next = rows.length === limit && last !== undefined ? { next: last.seq } : {};
  sendJson(response, 200, { rows: rows.map(toReadable), ...next }, NO_STORE);
}

async function sendRow(reader: LedgerReader, { response }: HttpExchange, { parts }: RouteRequest): Promise<void> {
  const [seq = ""] = parts;
  const row = SEQ.test(seq) ? await reader.get(Number(seq)) : undefined;
  if (row === undefined)
    throw new OwlError("route_not_found", `the ledger has no row ${JSON.stringify(seq.slice(0, 128))}`);
  sendJson(response, 200, toReadable(row), NO_STORE);
}

async function sendExport(reader: LedgerReader, { response }: HttpExchange, { query }: RouteRequest): Promise<void> {
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
  { query }: RouteRequest,
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
