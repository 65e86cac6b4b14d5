import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { countOf, visibleText } from "./format.ts";
import { lineDiff } from "./line-diff.ts";

const CLASSES = { " ": "same", "-": "out", "+": "in", "…": "gap" };
/** A file may consist only of line ends, and each line is an element. */
const MOST_LINES = 1000;

interface DiffProps {
  readonly label: string;
  readonly before: string;
  readonly after: string;
}

/** The marks are text, so that the diff can be read without colours. */
export function Diff({ label, before, after }: DiffProps): JSX.Element {
  const lines = useMemo(() => lineDiff(before, after), [before, after]);
  if (!lines.some(({ mark }) => mark === "-" || mark === "+"))
    return <p class="muted">{after === "" ? "It is empty." : "No line is other; ends of lines may be."}</p>;
  const more = lines.length - MOST_LINES;
  return (
    <pre class="diff" tabIndex={0} role="group" aria-label={label}>
      {lines.slice(0, MOST_LINES).map(({ mark, text }) => (
        <span class={CLASSES[mark]}>{`${mark} ${visibleText(text)}\n`}</span>
      ))}
      {more > 0 ? <span class="gap">{`… ${countOf(more)} more lines are not shown\n`}</span> : null}
    </pre>
  );
}
