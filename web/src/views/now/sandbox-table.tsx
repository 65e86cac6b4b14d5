import type { JSX } from "preact";
import type { SandboxNow } from "../../../../src/operator/contract.ts";
import { countOf } from "../../parts/format.ts";
import { Still } from "../../parts/memo.tsx";
import { Empty } from "../../parts/problem.tsx";
import { VirtualRows } from "../../parts/virtual-rows.tsx";
import { changeQuery, place } from "../../routing/router.ts";
import { SANDBOX_COLUMNS, type SandboxColumn } from "./sandbox-columns.tsx";
import { nextSort, type Sort, sorted, sortOf } from "./sandbox-sort.ts";

/** The filter and the sort order are in the address. */
export function SandboxTable({ sandboxes }: { readonly sandboxes: readonly SandboxNow[] }): JSX.Element {
  const { query } = place.value;
  const text = query.get("filter") ?? "";
  const sort = sortOf(query.get("sort") ?? "");
  const found = text === "" ? sandboxes : sandboxes.filter((sandbox) => matches(sandbox, text.toLowerCase()));
  const shown = sorted(found, sort);
  return (
    <section aria-labelledby="sandboxes-title">
      <header class="section-head">
        <h2 id="sandboxes-title">Sandboxes</h2>
        <input
          type="search"
          aria-label="Filter sandboxes"
          placeholder="Filter"
          data-filter
          value={text}
          onInput={(event) => changeQuery({ filter: event.currentTarget.value || undefined })}
        />
        {text === "" ? null : <span class="muted">{`${countOf(shown.length)} of ${countOf(sandboxes.length)}`}</span>}
      </header>
      {shown.length === 0 ? (
        <NoSandbox isFiltered={text !== ""} />
      ) : (
        <VirtualRows
          label="Sandboxes"
          memory={`sandboxes ${text}`}
          count={shown.length}
          isFitting
          header={<Head sort={sort} />}
          row={(index) => rowAt(shown, index)}
        />
      )}
    </section>
  );
}

function NoSandbox({ isFiltered }: { readonly isFiltered: boolean }): JSX.Element {
  return isFiltered ? (
    <Empty title="No sandbox matches." />
  ) : (
    <Empty title="No sandbox is in use.">One appears here as soon as a client runs code, a command or a browser.</Empty>
  );
}

function Head({ sort }: { readonly sort: Sort | undefined }): JSX.Element {
  return (
    <div class="row sandbox-row head" role="row">
      {SANDBOX_COLUMNS.map((column) => (
        <HeadCell key={column.name} column={column} sort={sort?.column === column ? sort : undefined} />
      ))}
    </div>
  );
}

interface HeadCellProps {
  readonly column: SandboxColumn;
  /** The sort order, when it is by this column. */
  readonly sort: Sort | undefined;
}

function HeadCell({ column, sort }: HeadCellProps): JSX.Element {
  return (
    <span
      role="columnheader"
      class={column.isNumber === true ? "end" : undefined}
      aria-sort={sort === undefined ? "none" : sort.isDown ? "descending" : "ascending"}
    >
      <button type="button" class="sort" onClick={() => changeQuery({ sort: nextSort(sort, column) })}>
        {column.title}
        {sort === undefined ? null : <span aria-hidden="true">{sort.isDown ? "↓" : "↑"}</span>}
      </button>
    </span>
  );
}

function rowAt(sandboxes: readonly SandboxNow[], index: number): JSX.Element | null {
  const sandbox = sandboxes[index];
  return sandbox === undefined ? null : <Row key={sandbox.id} sandbox={sandbox} index={index} />;
}

function Row({ sandbox, index }: { readonly sandbox: SandboxNow; readonly index: number }): JSX.Element {
  return (
    <div class="row sandbox-row" role="row" aria-rowindex={index + 2}>
      <Still value={sandbox}>{cells}</Still>
    </div>
  );
}

function cells(sandbox: SandboxNow): JSX.Element {
  return (
    <>
      {SANDBOX_COLUMNS.map(({ name, isNumber, isCode, cell }) => (
        <span
          key={name}
          role={name === "id" ? "rowheader" : "cell"}
          class={isNumber === true ? "end num" : isCode === true ? "mono" : undefined}
        >
          {cell(sandbox)}
        </span>
      ))}
    </>
  );
}

function matches(sandbox: SandboxNow, text: string): boolean {
  return [sandbox.id, sandbox.owner, sandbox.template, sandbox.runtime, sandbox.state, sandbox.running ?? ""].some(
    (field) => field.toLowerCase().includes(text),
  );
}
