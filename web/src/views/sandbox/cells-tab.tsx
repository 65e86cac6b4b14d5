import type { JSX } from "preact";
import type { Activity } from "../../../../src/operator/activity-log.ts";
import { CodeBlock } from "../../parts/code-block.tsx";
import { visibleText } from "../../parts/format.ts";
import { Empty } from "../../parts/problem.tsx";
import { Clock } from "../../parts/time.tsx";
import { useActivity } from "./use-activity.ts";
import type { ShownSandbox } from "./shown-sandbox.ts";

/** An SVG can contain scripts and links, so only raster images are shown. */
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

interface Cell {
  readonly key: string;
  readonly entry: Activity;
  readonly printed: string;
}

export function CellsTab({ sandbox }: { readonly sandbox: ShownSandbox }): JSX.Element {
  const { entries, state } = useActivity(sandbox, ({ kind }) => kind === "code");
  const cells = cellsOf(entries);
  if (cells.length === 0) {
    return (
      <Empty title={state === "connecting" ? "Connecting…" : "No code was run here yet."}>
        Each piece of code appears with what it printed, its result and its plots.
      </Empty>
    );
  }
  return (
    <ol class="cells">
      {cells.map(({ key, entry, printed }) => (
        <li key={key}>
          <CellView entry={entry} printed={printed} />
        </li>
      ))}
    </ol>
  );
}

function CellView({ entry, printed }: Omit<Cell, "key">): JSX.Element {
  const { cell, by, time } = entry;
  return (
    <article class="cell">
      <header>
        <strong>{visibleText(cell?.language || "code")}</strong>
        <span class="muted">
          {by === undefined ? null : `${visibleText(by)}, `}
          <Clock time={time} />
        </span>
      </header>
      {cell === undefined ? null : <CodeBlock label="Code" text={cell.code} />}
      <CellPart label="printed" text={printed} />
      <CellPart label="result" text={cell?.result} />
      <CellPart label="error" text={cell?.error} />
      {(cell?.images ?? [])
        .filter(({ mime }) => PICTURES.includes(mime))
        .map(({ mime, data }, index) => (
          <img key={index} src={`data:${mime};base64,${data}`} alt={`Picture ${index + 1} of this code`} />
        ))}
      <PicturesGone count={cell?.imagesGone ?? 0} />
    </article>
  );
}

function PicturesGone({ count }: { readonly count: number }): JSX.Element | null {
  if (count === 0) return null;
  return <p class="muted">{count === 1 ? "1 picture is" : `${count} pictures are`} no longer kept.</p>;
}

function CellPart({ label, text }: { readonly label: string; readonly text: string | undefined }): JSX.Element | null {
  if (text === undefined || text === "") return null;
  return (
    <div class={`cell-part ${label}`}>
      <span class="muted">{label}</span>
      <CodeBlock label={label} text={text} />
    </div>
  );
}

/** Entries of one call form one cell. The last entry contains the result. */
export function cellsOf(entries: readonly Activity[]): readonly Cell[] {
  const cells = new Map<string, Cell>();
  for (const entry of entries) {
    const key = entry.call ?? `${entry.seq}`;
    const last = cells.get(key);
    const printed = (last?.printed ?? "") + (entry.text ?? "");
    const cell = entry.cell ?? last?.entry.cell;
    cells.set(key, { key, printed, entry: { ...(last?.entry ?? entry), ...(cell === undefined ? {} : { cell }) } });
  }
  return [...cells.values()].filter(({ entry, printed }) => entry.cell !== undefined || printed !== "");
}
