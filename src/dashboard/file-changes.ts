import type { Sandbox } from "../sandbox/sandbox.ts";
import { MAX_LISTED, markOf, type WorkspaceEntry, type WorkspaceStart } from "../sandbox/workspace-start.ts";
import type { FileChange, FileChanges } from "./contract-files.ts";

const TIMEOUT_MS = 20_000;
const MAX_CHANGES = 500;
/** So many of them are shown with their text, and only small ones. */
const MAX_TEXTS = 50;
const MAX_TEXT_BYTES = 32_768;

type Change = FileChange["change"];

/**
 * What is other in the workspace than at the start. A workspace of the sandbox's own began empty, so all of it is new. The files
 * of a folder of the host are known by name, size and time from when the sandbox began: what was in them is not.
 */
export async function changesOf(sandbox: Sandbox, workspacePath: string, signal: AbortSignal): Promise<FileChanges> {
  const { plan, facts, start } = sandbox;
  const isMounted = plan.volumes.some(({ guestPath }) => guestPath === workspacePath);
  const params = { path: ".", recursive: true, includeHidden: true, maxEntries: MAX_LISTED };
  const { entries, isTruncated } = await sandbox.request("file.list", params, { timeoutMs: TIMEOUT_MS, signal });
  const files = entries.filter(({ type }) => type === "file");
  const judge = isMounted ? sinceStart(start, facts.createdAtMs) : (): Change => "added";
  const found = files.flatMap((entry) => {
    const change = judge(entry);
    return change === undefined ? [] : [{ entry, change }];
  });
  // What is not listed may still be there.
  const removed = isTruncated ? [] : removedSince(start, files);
  const changes: FileChange[] = [];
  for (const { entry, change } of found.slice(0, MAX_CHANGES)) {
    const after = changes.length < MAX_TEXTS ? await textOf(sandbox, entry, signal) : undefined;
    changes.push({ path: entry.path, change, ...(after !== undefined && { after }) });
  }
  changes.push(...removed.slice(0, MAX_CHANGES - changes.length));
  return { changes, truncated: isTruncated || found.length + removed.length > MAX_CHANGES };
}

/** Of files that the start does not know for certain, those that were written since then count as changed. */
function sinceStart(start: WorkspaceStart | undefined, startMs: number): (entry: WorkspaceEntry) => Change | undefined {
  return (entry) => {
    const before = start?.files.get(entry.path);
    if (before !== undefined) return before === markOf(entry) ? undefined : "changed";
    if (start?.isWhole === true) return "added";
    return Date.parse(entry.modifiedAt) >= startMs ? "changed" : undefined;
  };
}

function removedSince(start: WorkspaceStart | undefined, files: readonly WorkspaceEntry[]): readonly FileChange[] {
  const alive = new Set(files.map(({ path }) => path));
  const gone = [...(start?.files.keys() ?? [])].filter((path) => !alive.has(path));
  return gone.map((path) => ({ path, change: "removed" }));
}

async function textOf(
  sandbox: Sandbox,
  { path, sizeBytes }: WorkspaceEntry,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (sizeBytes > MAX_TEXT_BYTES) return undefined;
  const params = { path, encoding: "auto", maxBytes: MAX_TEXT_BYTES } as const;
  // One that is gone again, or that may not be read, is shown without its text.
  const read = await sandbox.request("file.read", params, { timeoutMs: TIMEOUT_MS, signal }).catch(() => undefined);
  return read === undefined || read.encoding === "base64" ? undefined : read.content;
}
