import { signal } from "@preact/signals";
import type { LedgerLine, LedgerPage } from "../../../../src/operator/contract.ts";
import { get } from "../../server/api.ts";
import type { Filters } from "./filters.ts";

const PAGE_ROWS = 200;
/** The delay before the first retry after an error. It doubles with each further error. */
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;

/** A long list of rows, newest first, of which only those near the visible ones are loaded. */
export abstract class LedgerPages {
  /** Changes whenever the list must be rendered again. */
  readonly version = signal(0);
  protected readonly filters: Filters;
  #error: unknown;
  #isStarted = false;
  #isClosed = false;
  #newest = 0;
  #failures = 0;
  #pause: ReturnType<typeof setTimeout> | undefined;

  constructor(filters: Filters) {
    this.filters = filters;
  }

  /** The number of rows that is known so far. */
  abstract get length(): number;
  /** Whether there are more rows than `length`. */
  abstract get hasMore(): boolean;
  /** The number of all rows, when they were counted. */
  abstract get total(): number | undefined;
  abstract row(index: number): LedgerLine | undefined;
  /** Loads the missing rows in a range. */
  abstract want(first: number, last: number): void;
  protected abstract take(answer: LedgerPage, before: number | undefined): void;

  get error(): unknown {
    return this.#error;
  }

  get isStarted(): boolean {
    return this.#isStarted;
  }

  /** The number of the newest row when the list was loaded. */
  get newest(): number {
    return this.#newest;
  }

  async start(): Promise<void> {
    await this.load(undefined);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#pause);
  }

  /**
   * Calls `onDone` after success, or after a delay on an error. Until then the same rows are not requested again,
   * because every render wants the missing rows.
   */
  protected async ask(before: number, onDone: () => void): Promise<void> {
    await this.load(before);
    if (this.#error === undefined || this.#isClosed) return onDone();
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures);
    this.#failures += 1;
    this.#pause = setTimeout(() => {
      onDone();
      this.version.value += 1;
    }, pauseMs);
  }

  protected async load(before: number | undefined): Promise<void> {
    try {
      const answer = await get<LedgerPage>("ledger", { ...this.filters, before, limit: PAGE_ROWS });
      if (this.#isClosed) return;
      if (before === undefined) this.#newest = answer.newest ?? answer.rows[0]?.seq ?? 0;
      this.take(answer, before);
      this.#error = undefined;
      this.#failures = 0;
      this.#isStarted = true;
    } catch (error) {
      this.#error = error;
    }
    this.version.value += 1;
  }
}

/** With a filter the pages must be loaded in order: the position of a row depends on all rows before it. */
export class FilteredPages extends LedgerPages {
  readonly #rows: LedgerLine[] = [];
  #next: number | undefined;
  #total: number | undefined;
  #hasMore = true;
  #isLoading = false;

  get length(): number {
    return this.#rows.length;
  }

  get hasMore(): boolean {
    return this.#hasMore;
  }

  get total(): number | undefined {
    return this.#total;
  }

  row(index: number): LedgerLine | undefined {
    return this.#rows[index];
  }

  want(_first: number, last: number): void {
    if (this.#isLoading || !this.#hasMore || this.#next === undefined || last < this.#rows.length - PAGE_ROWS / 2)
      return;
    this.#isLoading = true;
    void this.ask(this.#next, () => (this.#isLoading = false));
  }

  protected take({ rows, next, total }: LedgerPage): void {
    this.#rows.push(...rows);
    this.#total ??= total;
    this.#next = next;
    this.#hasMore = next !== undefined;
  }
}

/** Pages far from the visible rows are dropped, so that a million rows do not stay in memory. */
const MOST_PAGES = 50;

/** Without a filter the row numbers have no gaps, so any position can be loaded directly. */
export class WholePages extends LedgerPages {
  readonly #pages = new Map<number, readonly LedgerLine[]>();
  readonly #loading = new Set<number>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get hasMore(): boolean {
    return false;
  }

  get total(): number {
    return this.#length;
  }

  row(index: number): LedgerLine | undefined {
    return this.#pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
  }

  want(first: number, last: number): void {
    const end = Math.floor(last / PAGE_ROWS);
    for (let page = Math.floor(first / PAGE_ROWS); page <= end; page += 1) {
      if (this.#pages.has(page) || this.#loading.has(page) || page * PAGE_ROWS >= this.#length) continue;
      this.#loading.add(page);
      void this.ask(this.newest + 1 - page * PAGE_ROWS, () => this.#loading.delete(page));
    }
  }

  protected take({ rows, next }: LedgerPage, before: number | undefined): void {
    const page = before === undefined ? 0 : (this.newest + 1 - before) / PAGE_ROWS;
    this.#pages.set(page, rows);
    if (page === 0) this.#length = this.newest;
    // The server has no older rows.
    if (next === undefined) this.#length = page * PAGE_ROWS + rows.length;
    const far = [...this.#pages.keys()].sort((a, b) => Math.abs(b - page) - Math.abs(a - page));
    for (const each of far.slice(0, Math.max(0, far.length - MOST_PAGES))) this.#pages.delete(each);
  }
}
