import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { FileChange, FileChanges } from "../../../../src/operator/contract-files.ts";
import { Badge } from "../../parts/badge.tsx";
import { CodeBlock } from "../../parts/code-block.tsx";
import { Diff } from "../../parts/diff.tsx";
import { countOf, visibleText } from "../../parts/format.ts";
import { Empty, Loading, Problem } from "../../parts/problem.tsx";
import { changeQuery, place } from "../../routing/router.ts";
import { useResource } from "../../server/use-resource.ts";
import type { ShownSandbox } from "./shown-sandbox.ts";

const OPEN_AT_FIRST = 20;

export function ChangesTab({ sandbox }: { readonly sandbox: ShownSandbox }): JSX.Element {
  const list = useResource<FileChanges>(`sandboxes/${encodeURIComponent(sandbox.id)}/changes`);
  if (list.data === undefined)
    return list.error === undefined ? <Loading what="changes" /> : <Problem error={list.error} onRetry={list.reload} />;
  const { changes, truncated } = list.data;
  if (changes.length === 0) return <Empty title="No file is other than when the sandbox began." />;
  return (
    <section aria-labelledby="changes-title">
      <header class="section-head">
        <h2 id="changes-title">
          {changes.length === 1 ? "1 file changed" : `${countOf(changes.length)} files changed`}
        </h2>
        <button type="button" class="small quiet" onClick={list.reload}>
          Refresh
        </button>
      </header>
      {changes.map((change, index) => (
        <ChangeView key={change.path} change={change} isOpenAtFirst={index < OPEN_AT_FIRST} />
      ))}
      {truncated ? <p class="muted">There are more than can be shown.</p> : null}
    </section>
  );
}

interface ChangeViewProps {
  readonly change: FileChange;
  readonly isOpenAtFirst: boolean;
}

/** The body of a closed change is not rendered: the lines of all changes together could be too many for the browser. */
function ChangeView({ change, isOpenAtFirst }: ChangeViewProps): JSX.Element {
  const isMeant = place.value.query.get("path") === change.path;
  const [isOpen, setOpen] = useState(isMeant || (isOpenAtFirst && (change.before ?? change.after) !== undefined));
  const element = useRef<HTMLDetailsElement>(null);
  useLayoutEffect(() => {
    // Scrolls to the change in the address once, before the first paint.
    if (isMeant) element.current?.scrollIntoView();
  }, []);
  return (
    <details class="change" ref={element} open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary aria-current={isMeant ? "true" : undefined} onClick={() => changeQuery({ path: change.path })}>
        <Badge text={change.change} /> <span class="mono">{visibleText(change.path)}</span>
      </summary>
      {isOpen ? <ChangeBody change={change} /> : null}
    </details>
  );
}

const BEFORE = {
  large: "It was too large to have been kept.",
  binary: "It was no text.",
  gone: "It could not be read when the sandbox began.",
  full: "There was more in the folder than is kept, so what was in it is not known.",
  late: "It could not be read in time when the sandbox began, so what was in it is not known.",
  many: "Too many files changed to show what was in this one.",
  unknown: "What was in it is not known.",
} as const;

const AFTER = {
  large: "It is too large to show here; it can be downloaded from the files.",
  binary: "It is no text.",
  gone: "It cannot be read now.",
  full: "Too many files changed to show this one; it can be read among the files.",
  late: "It could not be read in time; refresh to try again.",
  many: "Too many files changed to show this one; it can be read among the files.",
  unknown: "What is in it is not known.",
} as const;

/** A single text is shown as added or removed only when that is known. */
function ChangeBody({ change: shown }: { readonly change: FileChange }): JSX.Element {
  const { path, change, before, beforeMissing, after, afterMissing } = shown;
  if (beforeMissing === undefined && afterMissing === undefined)
    return <Diff label={`Changes of ${path}`} before={before ?? ""} after={after ?? ""} />;
  return (
    <>
      {beforeMissing === undefined ? null : <p class="muted">{BEFORE[beforeMissing]}</p>}
      {before === undefined ? null : (
        <>
          <p class="muted">It was:</p>
          <CodeBlock label={`Former content of ${path}`} text={before} />
        </>
      )}
      {afterMissing === undefined ? null : <p class="muted">{AFTER[afterMissing]}</p>}
      {after === undefined ? null : (
        <>
          {change === "changed" ? <p class="muted">Now it is:</p> : null}
          <CodeBlock label={`Content of ${path}`} text={after} />
        </>
      )}
    </>
  );
}
