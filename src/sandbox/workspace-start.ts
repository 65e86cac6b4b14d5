import type { GuestClient } from "./guest-client.ts";
import type { TextStore } from "./text-store.ts";
import { type FoundText, readTexts, type WorkspaceEntry } from "./workspace-texts.ts";

/** A file as it was when its sandbox began. */
export interface StartFile {
  /** Is another one after every change of the file. */
  readonly mark: string;
  readonly sizeBytes: number;
  readonly content: FoundText;
}

/** The files of a workspace when its sandbox began. */
export interface WorkspaceStart {
  readonly files: ReadonlyMap<string, StartFile>;
  /** Not of a folder with more files than are listed. */
  readonly isWhole: boolean;
}

/** Of so many files one can say later what has become of them. */
export const MAX_LISTED = 5000;
const TIMEOUT_MS = 5000;

/** Nothing where it cannot be listed in time: the sandbox is worth more than what can be told of it. */
export async function readStart(
  client: GuestClient,
  { store, signal }: { readonly store: TextStore; readonly signal: AbortSignal },
): Promise<WorkspaceStart | undefined> {
  const untilMs = performance.now() + TIMEOUT_MS;
  const params = { path: ".", recursive: true, includeHidden: true, maxEntries: MAX_LISTED };
  const listed = await client.request("file.list", params, { timeoutMs: TIMEOUT_MS, signal }).catch(() => undefined);
  if (listed === undefined) return undefined;
  const entries = listed.entries.filter(({ type }) => type === "file");
  const texts = await readTexts(client, { files: entries, untilMs, signal }).catch(() => undefined);
  const files = entries.map((entry) => {
    const content = stored(texts?.get(entry.path) ?? { missing: "late" }, store);
    return [entry.path, { mark: markOf(entry), sizeBytes: entry.sizeBytes, content }] as const;
  });
  return { files: new Map(files), isWhole: !listed.isTruncated };
}

export function dropStart({ files }: WorkspaceStart, store: TextStore): void {
  for (const { content } of files.values()) if ("text" in content) store.drop(content.text);
}

/** Programs can set the time of the last write, but not the time at which they did so. */
export function markOf({ sizeBytes, modifiedAt, changedAtMs }: WorkspaceEntry): string {
  return `${sizeBytes} ${modifiedAt} ${changedAtMs}`;
}

function stored(found: FoundText, store: TextStore): FoundText {
  if (!("text" in found)) return found;
  const text = store.keep(found.text);
  return text === undefined ? { missing: "full" } : { text };
}
