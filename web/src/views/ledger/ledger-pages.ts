import { signal } from "@preact/signals";
import type { LedgerLine, LedgerPage } from "../../../../src/dashboard/contract.ts";
import { get } from "../../server/api.ts";
import type { Filters } from "./filters.ts";

const PAGE_ROWS = 200;
/** Rows far from what is looked at are let go of, so that a million do not stay in memory. */
const MOST_PAGES = 50;

/**
 * The ledger as a long list of places, newest first, of which only pages near the reader are loaded. Without a filter the numbers
 * have no holes, so that any place can be asked for at once; with one, pages follow each other.
 */
export class LedgerPages {
  /** Changes whenever there is something else to draw. */
  readonly version = signal(0);
  readonly #filters: Filters;
  readonly #isWhole: boolean;
  readonly #pages = new Map<number, readonly LedgerLine[]>();
  readonly #loading = new Set<number>();
  #newest = 0;
  #length = 0;
  #total: number | undefined;
  #hasMore = true;
  #isStarted = false;
  #error: unknown;
  #isClosed = false;

  constructor(filters: Filters) {
    this.#filters = filters;
    this.#isWhole = Object.keys(filters).length === 0;
  }

  /** How many places there are as far as is known. */
  get length(): number {
    return this.#length;
  }

  /** How many rows match in all, where the server has counted them. */
  get total(): number | undefined {
    return this.#isWhole && this.#isStarted ? this.#length : this.#total;
  }

  get hasMore(): boolean {
    return this.#hasMore;
  }

  get isStarted(): boolean {
    return this.#isStarted;
  }

  get error(): unknown {
    return this.#error;
  }

  get newest(): number {
    return this.#newest;
  }

  close(): void {
    this.#isClosed = true;
  }

  row(index: number): LedgerLine | undefined {
    return this.#pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
  }

  async start(): Promise<void> {
    await this.#load(0);
  }

  /** Loads what is missing between two places. */
  want(first: number, last: number): void {
    const end = Math.floor(last / PAGE_ROWS);
    for (let page = Math.floor(first / PAGE_ROWS); page <= end; page += 1) {
      if (this.#pages.has(page) || this.#loading.has(page)) continue;
      if (this.#isWhole ? page * PAGE_ROWS < this.#length : this.#pages.has(page - 1) && this.#hasMore)
        void this.#load(page);
    }
  }

  async #load(page: number): Promise<void> {
    this.#loading.add(page);
    try {
      const answer = await get<LedgerPage>("ledger", {
        ...this.#filters,
        before: this.#before(page),
        limit: PAGE_ROWS,
      });
      if (this.#isClosed) return;
      this.#take(page, answer);
      this.#error = undefined;
    } catch (error) {
      this.#error = error;
    }
    this.#loading.delete(page);
    this.version.value += 1;
  }

  #before(page: number): number | undefined {
    if (page === 0) return undefined;
    return this.#isWhole ? this.#newest + 1 - page * PAGE_ROWS : this.#pages.get(page - 1)?.at(-1)?.seq;
  }

  #take(page: number, { rows, more, total }: LedgerPage): void {
    this.#isStarted = true;
    if (page === 0) {
      this.#newest = rows[0]?.seq ?? 0;
      this.#total = total;
    }
    this.#pages.set(page, rows);
    if (this.#isWhole) {
      this.#length = more || page > 0 ? Math.max(this.#length, this.#newest) : rows.length;
      // Older ones were let go of by the server: the list ends here.
      if (!more) this.#length = page * PAGE_ROWS + rows.length;
      this.#forget(page);
    } else {
      this.#length = Math.max(this.#length, page * PAGE_ROWS + rows.length);
      this.#hasMore = more;
    }
  }

  #forget(near: number): void {
    const far = [...this.#pages.keys()].sort((a, b) => Math.abs(b - near) - Math.abs(a - near));
    for (const page of far.slice(0, Math.max(0, this.#pages.size - MOST_PAGES))) this.#pages.delete(page);
  }
}
