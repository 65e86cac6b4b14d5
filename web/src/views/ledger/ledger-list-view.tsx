import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { LedgerPage } from "../../../../src/operator/contract.ts";
import { streamState } from "../../live/now-store.ts";
import { countOf } from "../../parts/format.ts";
import { Empty, Loading, Problem } from "../../parts/problem.tsx";
import { apiUrl, get } from "../../server/api.ts";
import { Page } from "../../shell/page.tsx";
import { FilterForm } from "./filter-form.tsx";
import { currentFilters, type Filters } from "./filters.ts";
import { FilteredPages, type LedgerPages, WholePages } from "./ledger-pages.ts";
import { LedgerRows } from "./ledger-rows.tsx";
import { Timeline } from "./timeline.tsx";
import { VerifyButton } from "./verify-button.tsx";

const LOOK_AGAIN_MS = 3_000;
const MOST_NEWS = 100;

export function LedgerList(): JSX.Element {
  const filters = currentFilters();
  const key = JSON.stringify(filters);
  const [round, setRound] = useState(0);
  return (
    <Page title="Ledger" actions={<LedgerActions filters={filters} />}>
      <FilterForm filters={filters} />
      <Timeline filters={filters} round={round} />
      <Rows key={`${key} ${round}`} filters={filters} onNews={() => setRound(round + 1)} />
    </Page>
  );
}

function LedgerActions({ filters }: { readonly filters: Filters }): JSX.Element {
  return (
    <>
      <a class="button" href={apiUrl("ledger/export", { ...filters, format: "csv" })} download="">
        Export CSV
      </a>
      <a class="button" href={apiUrl("ledger/export", { ...filters, format: "json" })} download="">
        Export JSON
      </a>
      <VerifyButton />
    </>
  );
}

function Rows({ filters, onNews }: { readonly filters: Filters; readonly onNews: () => void }): JSX.Element {
  const [pages] = useState(() =>
    Object.keys(filters).length === 0 ? new WholePages(filters) : new FilteredPages(filters),
  );
  useEffect(() => {
    void pages.start();
    return () => pages.close();
  }, []);
  const news = useNews(pages, filters);
  void pages.version.value;
  // In a text search, a page may contain no match and still not be the last one.
  if (pages.isStarted && pages.length === 0 && pages.hasMore) pages.want(0, 0);
  const isLooking = !pages.isStarted || (pages.length === 0 && pages.hasMore);
  if (isLooking)
    return pages.error === undefined ? <Loading what="the ledger" /> : <Problem error={pages.error} onRetry={onNews} />;
  return (
    <section aria-labelledby="rows-title">
      <header class="section-head">
        <h2 id="rows-title">{titleOf(pages)}</h2>
        {news === 0 ? null : (
          <button type="button" class="small primary" onClick={onNews}>
            {news >= MOST_NEWS ? `Show ${MOST_NEWS} or more new` : `Show ${news} new`}
          </button>
        )}
      </header>
      <Problem error={pages.error} />
      {pages.length === 0 ? (
        <NoRows isFiltered={Object.keys(filters).length > 0} />
      ) : (
        <LedgerRows pages={pages} filters={filters} />
      )}
    </section>
  );
}

function titleOf(pages: LedgerPages): string {
  const count = pages.hasMore ? (pages.total ?? pages.length) : pages.length;
  const words = count === 1 ? "1 row" : `${countOf(count)} rows`;
  return pages.hasMore && pages.total === undefined ? `More than ${words}` : words;
}

function NoRows({ isFiltered }: { readonly isFiltered: boolean }): JSX.Element {
  return isFiltered ? (
    <Empty title="No call matches.">Change or clear the filter to see others.</Empty>
  ) : (
    <Empty title="Nothing was called yet.">Every call is recorded here, refused ones too.</Empty>
  );
}

/** The number of rows since the list was loaded. A button shows them, so that rows do not move while the user reads. */
function useNews(pages: LedgerPages, filters: Filters): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    let found = 0;
    let lookedThrough: number | undefined;
    const look = async (): Promise<void> => {
      if (document.hidden || streamState.peek() !== "open" || !pages.isStarted || found >= MOST_NEWS) return;
      const after = lookedThrough ?? pages.newest;
      const { rows, newest } = await get<LedgerPage>("ledger", { ...filters, after, limit: MOST_NEWS });
      lookedThrough = newest ?? after;
      found += rows.length;
      setCount(found);
    };
    let isLooking = false;
    const lookOnce = async (): Promise<void> => {
      if (isLooking) return;
      isLooking = true;
      // When the server does not respond, the header of the page shows it.
      await look().catch(() => undefined);
      isLooking = false;
    };
    const timer = setInterval(() => void lookOnce(), LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  return count;
}
