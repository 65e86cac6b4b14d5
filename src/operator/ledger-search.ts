import type { LedgerFilter, Page } from "../governance/ledger/query.ts";
import type { LedgerRow } from "../governance/ledger/row.ts";
import type { LedgerReader } from "../governance/ledger/store.ts";

/** Rows that are read in one go when a text is looked for: no look holds up those who wait behind it. */
const WINDOW_ROWS = 20_000;

export interface Found {
  readonly rows: readonly LedgerRow[];
  /** Where to go on, when the ledger has not been looked through. */
  readonly next: number | undefined;
}

/**
 * Lists rows newest first below `before`. A text stands in no index: it is looked for window by window, and after
 * `maxWindows` of them whoever asks is told where to go on.
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

/** Lists the oldest rows above `after`, looking through so many windows at most, and says how far that was. */
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

/** Forward without an end, for exports: as many windows as it takes to have a row. */
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
