import type { JSX } from "preact";
import type { LedgerLine } from "../../../../src/operator/contract.ts";
import { Badge } from "../../parts/badge.tsx";
import { countOf, dateTimeOf, durationOf, moneyOf, shortTimeOf, visibleText } from "../../parts/format.ts";
import { VirtualRows } from "../../parts/virtual-rows.tsx";
import { href } from "../../routing/router.ts";
import type { Filters } from "./filters.ts";
import type { LedgerPages } from "./ledger-pages.ts";

const COLUMNS = ["No.", "Time", "Client", "Tool", "Decision", "Outcome", "Duration", "Cost"];

export function LedgerRows({
  pages,
  filters,
}: {
  readonly pages: LedgerPages;
  readonly filters: Filters;
}): JSX.Element {
  void pages.version.value;
  return (
    <VirtualRows
      label="Recorded calls"
      memory={JSON.stringify(filters)}
      count={pages.length}
      onWindow={(first, last) => pages.want(first, last)}
      header={
        <div class="row ledger-row head" role="row">
          {COLUMNS.map((name) => (
            <span key={name} role="columnheader">
              {name}
            </span>
          ))}
        </div>
      }
      row={(index) => <Row key={index} index={index} line={pages.row(index)} filters={filters} />}
    />
  );
}

interface RowProps {
  readonly index: number;
  readonly line: LedgerLine | undefined;
  readonly filters: Filters;
}

function Row({ index, line, filters }: RowProps): JSX.Element {
  if (line === undefined) {
    return (
      <div class="row ledger-row waiting" role="row" aria-rowindex={index + 2}>
        <span role="cell">…</span>
      </div>
    );
  }
  return (
    <div class="row ledger-row" role="row" aria-rowindex={index + 2}>
      <span role="cell" class="num">
        <a href={href(["ledger", line.seq], filters)}>
          {countOf(line.seq)}
          <span class="unseen">, {visibleText(line.tool)}</span>
        </a>
      </span>
      <span role="cell" class="num" title={dateTimeOf(line.time)}>
        {shortTimeOf(line.time)}
      </span>
      <span role="cell" title={visibleText(line.label ?? line.client)}>
        {visibleText(line.client)} {line.label === null ? null : <small class="muted">{visibleText(line.label)}</small>}
      </span>
      <span role="cell" class="mono">
        {visibleText(line.tool === "" ? line.kind : line.tool)}
        {line.count > 1 ? <small class="muted"> ×{countOf(line.count)}</small> : null}
      </span>
      <span role="cell">
        <Badge text={line.decision} />
      </span>
      <span role="cell">
        <Badge text={line.outcome} /> {line.errorKind === null ? null : <small class="muted">{line.errorKind}</small>}
      </span>
      <span role="cell" class="num end">
        {durationOf(line.durationMs)}
      </span>
      <span role="cell" class="num end">
        {line.costMicros === 0 ? "–" : moneyOf(line.costMicros)}
      </span>
    </div>
  );
}
