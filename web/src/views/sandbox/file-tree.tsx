import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { FileEntry, FileList } from "../../../../src/operator/contract-files.ts";
import { bytesOf, visibleText } from "../../parts/format.ts";
import { Loading, Problem } from "../../parts/problem.tsx";
import { changeQuery } from "../../routing/router.ts";
import { useResource } from "../../server/use-resource.ts";

interface FileTreeProps {
  readonly sandboxPath: string;
  readonly root: string;
  readonly selected: string | undefined;
  /** Called with the folder that was opened last, which is the target of uploads. */
  readonly onFolder: (path: string) => void;
}

/** Nested lists. Each folder is loaded when it is opened. */
export function FileTree(props: FileTreeProps): JSX.Element {
  const { sandboxPath, root } = props;
  const list = useResource<FileList>(`${sandboxPath}/files`, { path: root });
  if (list.data === undefined)
    return list.error === undefined ? <Loading what="files" /> : <Problem error={list.error} onRetry={list.reload} />;
  if (list.data.entries.length === 0) return <p class="muted">This folder is empty.</p>;
  return (
    <ul class="tree">
      {inOrder(list.data.entries).map((entry) => (
        <li key={entry.name}>
          {entry.kind === "directory" ? (
            <Folder {...props} root={`${root}/${entry.name}`} name={entry.name} />
          ) : (
            <FileLine {...props} entry={entry} />
          )}
        </li>
      ))}
      {list.data.truncated ? <li class="muted">There are more than can be shown.</li> : null}
    </ul>
  );
}

function Folder(props: FileTreeProps & { readonly name: string }): JSX.Element {
  const { name, root, selected, onFolder } = props;
  const [isOpen, setOpen] = useState(selected?.startsWith(`${root}/`) ?? false);
  return (
    <>
      <button
        type="button"
        class="tree-line"
        aria-expanded={isOpen}
        onClick={() => {
          setOpen(!isOpen);
          onFolder(isOpen ? root.slice(0, root.lastIndexOf("/")) : root);
        }}
      >
        <span class="mark" aria-hidden="true">
          {isOpen ? "▾" : "▸"}
        </span>
        <span class="name">{visibleText(name)}</span>
      </button>
      {isOpen ? <FileTree {...props} /> : null}
    </>
  );
}

function FileLine({ root, entry, selected }: FileTreeProps & { readonly entry: FileEntry }): JSX.Element {
  const path = `${root}/${entry.name}`;
  return (
    <button
      type="button"
      class="tree-line"
      aria-current={path === selected ? "true" : undefined}
      disabled={entry.kind === "other"}
      onClick={() => changeQuery({ path })}
    >
      <span class="mark" aria-hidden="true">
        {entry.kind === "link" ? "↗" : " "}
      </span>
      <span class="name">{visibleText(entry.name)}</span>
      <span class="muted num">{entry.kind === "file" ? bytesOf(entry.sizeBytes) : entry.kind}</span>
    </button>
  );
}

function inOrder(entries: readonly FileEntry[]): readonly FileEntry[] {
  const rank = ({ kind }: FileEntry): number => (kind === "directory" ? 0 : 1);
  return entries.toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
}
