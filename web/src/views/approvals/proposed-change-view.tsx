import type { JSX } from "preact";
import type { ProposedChange } from "../../../../src/operator/contract.ts";
import { CodeBlock } from "../../parts/code-block.tsx";
import { Diff } from "../../parts/diff.tsx";

const WHY_UNREAD = {
  large: "The file is too large to be compared here.",
  binary: "What is in the file now is no text.",
  gone: "The file cannot be read now.",
  full: "The file was not read.",
  late: "The file could not be read in time.",
  many: "The file was not read.",
  unknown: "Which sandbox it is in is not known yet, so the file may be new or there already.",
} as const;

/** Shows the text as a new file only when the file is known not to exist. */
export function ProposedChangeView({ change }: { readonly change: ProposedChange }): JSX.Element {
  const { path, before, beforeMissing, after, isPart } = change;
  const label = `What would change in ${path}`;
  if (beforeMissing === undefined) {
    return (
      <>
        {before === undefined ? <p class="muted">A new file.</p> : null}
        <Diff label={label} before={before ?? ""} after={after} />
      </>
    );
  }
  return (
    <>
      <p class="warn-text">{WHY_UNREAD[beforeMissing]}</p>
      <p class="muted">{leadOf(before !== undefined, isPart === true)}</p>
      {before === undefined ? <CodeBlock label={label} text={after} /> : <Diff {...{ label, before, after }} />}
    </>
  );
}

function leadOf(isReplaced: boolean, isPart: boolean): string {
  if (isReplaced) return "In it, this would be put in place of that:";
  return isPart ? "This would come at its end:" : "Whatever is in it, it would be replaced by this:";
}
