import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { visibleText } from "./format.ts";
import { lineDiff } from "./line-diff.ts";

const CLASSES = { " ": "same", "-": "out", "+": "in", "…": "gap" };

interface DiffProps {
  readonly label: string;
  readonly before: string;
  readonly after: string;
}

/** The marks are text, so that the change is told without colours too. */
export function Diff({ label, before, after }: DiffProps): JSX.Element {
  const lines = useMemo(() => lineDiff(before, after), [before, after]);
  return (
    <pre class="diff" tabIndex={0} role="group" aria-label={label}>
      {lines.map(({ mark, text }) => (
        <span class={CLASSES[mark]}>{`${mark} ${visibleText(text)}\n`}</span>
      ))}
    </pre>
  );
}
