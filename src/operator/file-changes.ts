import type { Sandbox } from "../sandbox/sandbox.ts";
import {
  MAX_LISTED,
  markOf,
  type WorkspaceStart,
  type FoundText,
  readTexts,
  type WorkspaceEntry,
} from "../sandbox/workspace-start.ts";
import type { FileChange, FileChanges, MissingText } from "./contract-files.ts";

const TIMEOUT_MS = 20_000;
const MAX_CHANGES = 500;
/** The maximum number of changes with texts, and of characters in all texts. */
const MAX_WITH_TEXTS = 50;
const MAX_SHOWN_CHARS = 1024 * 1024;

/** The start of a workspace that is not mounted: it was empty. */
const EMPTY: WorkspaceStart = { files: new Map(), isWhole: true };

/** One changed file, with its known content before and after. */
interface Difference {
  readonly path: string;
  readonly change: FileChange["change"];
  readonly before?: FoundText | undefined;
  readonly after?: FoundText | undefined;
}

/**
 * The files in the workspace that changed since the start. A workspace of the sandbox itself was empty; a mounted
 * folder of the host was not.
 */
export async function changesOf(sandbox: Sandbox, workspacePath: string, signal: AbortSignal): Promise<FileChanges> {
  const untilMs = performance.now() + TIMEOUT_MS;
  const isMounted = sandbox.plan.volumes.some(({ guestPath }) => guestPath === workspacePath);
  const start = isMounted ? await sandbox.start : EMPTY;
  const params = { path: ".", recursive: true, includeHidden: true, maxEntries: MAX_LISTED };
  const { entries, isTruncated } = await sandbox.request("file.list", params, { timeoutMs: TIMEOUT_MS, signal });
  const files = entries.filter(({ type }) => type === "file");
  const suspects = files.filter((entry) => isSuspect(entry, start, sandbox.facts.createdAtMs));
  const now = await readTexts(sandbox, { files: suspects, untilMs, signal });
  const found = suspects.flatMap((entry) => differenceOf(entry, start, now.get(entry.path)) ?? []);
  // In a truncated list, a missing file may still exist.
  const removed = isTruncated ? [] : removedSince(start, files);
  const all = [...found, ...removed];
  return { changes: shown(all.slice(0, MAX_CHANGES)), truncated: isTruncated || all.length > MAX_CHANGES };
}

/** A file that was not recorded at the start counts as changed when it was written since then. */
function isSuspect(entry: WorkspaceEntry, start: WorkspaceStart | undefined, startMs: number): boolean {
  const before = start?.files.get(entry.path);
  if (before !== undefined) return before.mark !== markOf(entry);
  return start?.isWhole === true || entry.changedAtMs >= startMs;
}

/** Undefined when a file was touched, or replaced by an identical one, so that its content is unchanged. */
function differenceOf(
  { path, sizeBytes }: WorkspaceEntry,
  start: WorkspaceStart | undefined,
  after: FoundText | undefined,
): Difference | undefined {
  const file = start?.files.get(path);
  if (file === undefined) return { path, change: start?.isWhole === true ? "added" : "changed", after };
  const isSame =
    file.sizeBytes === sizeBytes && textOf(file.content) !== undefined && textOf(file.content) === textOf(after);
  return isSame ? undefined : { path, change: "changed", before: file.content, after };
}

function removedSince(start: WorkspaceStart | undefined, files: readonly WorkspaceEntry[]): readonly Difference[] {
  const alive = new Set(files.map(({ path }) => path));
  const gone = [...(start?.files ?? [])].filter(([path]) => !alive.has(path));
  return gone.map(([path, { content }]) => ({ path, change: "removed", before: content }));
}

function shown(differences: readonly Difference[]): readonly FileChange[] {
  let room = MAX_SHOWN_CHARS;
  let withTexts = 0;
  return differences.map(({ path, change, before, after }) => {
    const chars = (textOf(before)?.length ?? 0) + (textOf(after)?.length ?? 0);
    const hasRoom = withTexts < MAX_WITH_TEXTS && chars <= room;
    if (hasRoom) {
      room -= chars;
      withTexts += 1;
    }
    return {
      path,
      change,
      ...(change !== "added" && side("before", before, hasRoom)),
      ...(change !== "removed" && side("after", after, hasRoom)),
    };
  });
}

function side(
  name: "before" | "after",
  found: FoundText | undefined,
  hasRoom: boolean,
): Pick<FileChange, "before" | "after" | "beforeMissing" | "afterMissing"> {
  const missing = (why: MissingText): ReturnType<typeof side> => ({ [`${name}Missing`]: why });
  if (found === undefined) return missing("unknown");
  if ("missing" in found) return missing(found.missing);
  return hasRoom ? { [name]: found.text } : missing("many");
}

function textOf(found: FoundText | undefined): string | undefined {
  return found !== undefined && "text" in found ? found.text : undefined;
}
