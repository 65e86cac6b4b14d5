import type { JSX } from "preact";
import type { FileChange, FileChanges } from "../../../../src/dashboard/contract-files.ts";
import { Badge } from "../../parts/badge.tsx";
import { CodeBlock } from "../../parts/code-block.tsx";
import { Diff } from "../../parts/diff.tsx";
import { countOf, visibleText } from "../../parts/format.ts";
import { Empty, Loading, Problem } from "../../parts/problem.tsx";
import { useResource } from "../../server/use-resource.ts";
import type { ShownSandbox } from "./shown-sandbox.ts";

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
      {changes.map((change) => (
        <ChangeView key={change.path} change={change} />
      ))}
      {truncated ? <p class="muted">There are more than can be shown.</p> : null}
    </section>
  );
}

function ChangeView({ change }: { readonly change: FileChange }): JSX.Element {
  return (
    <details class="change" open={change.before !== undefined || change.after !== undefined}>
      <summary>
        <Badge text={change.change} /> <span class="mono">{visibleText(change.path)}</span>
      </summary>
      <ChangeBody change={change} />
    </details>
  );
}

/** A text that stands alone is only shown as new where it is known to be. */
function ChangeBody({ change: { path, change, before, after } }: { readonly change: FileChange }): JSX.Element {
  if (before === undefined && after !== undefined && change === "changed") {
    return (
      <>
        <p class="muted">What it was before is not known. Now it is:</p>
        <CodeBlock label={`Content of ${path}`} text={after} />
      </>
    );
  }
  if (before !== undefined || after !== undefined)
    return <Diff label={`Changes of ${path}`} before={before ?? ""} after={after ?? ""} />;
  if (change === "removed")
    return <p class="muted">It was there when the sandbox began. What was in it is not known.</p>;
  return <p class="muted">No text, or too large to compare here.</p>;
}
