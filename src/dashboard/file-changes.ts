import type { GuestResult } from "../sandbox/guest-methods.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { FileChange, FileChanges } from "./contract-files.ts";

const TIMEOUT_MS = 20_000;
const MAX_LISTED = 5000;
const MAX_CHANGES = 500;
/** So many of them are shown with their text, and only small ones. */
const MAX_TEXTS = 50;
const MAX_TEXT_BYTES = 32_768;

type Entry = GuestResult<"file.list">["entries"][number];

/**
 * What is in the workspace that was not there at the start. A workspace of the sandbox's own began empty, so all of it
 * is new; of a folder of the host, what was written since the sandbox began counts as changed, and what it was before is not known.
 */
export async function changesOf(sandbox: Sandbox, workspacePath: string, signal: AbortSignal): Promise<FileChanges> {
  const { plan, facts } = sandbox;
  const isMounted = plan.volumes.some(({ guestPath }) => guestPath === workspacePath);
  const params = { path: ".", recursive: true, includeHidden: true, maxEntries: MAX_LISTED };
  const { entries, isTruncated } = await sandbox.request("file.list", params, { timeoutMs: TIMEOUT_MS, signal });
  const isMeant = ({ type, modifiedAt }: Entry): boolean =>
    type === "file" && (!isMounted || Date.parse(modifiedAt) >= facts.createdAtMs);
  const found = entries.filter(isMeant);
  const changes: FileChange[] = [];
  for (const entry of found.slice(0, MAX_CHANGES)) {
    const after = changes.length < MAX_TEXTS ? await textOf(sandbox, entry, signal) : undefined;
    const change = isMounted ? "changed" : "added";
    changes.push({ path: entry.path, change, ...(after !== undefined && { after }) });
  }
  return { changes, truncated: isTruncated || found.length > MAX_CHANGES };
}

async function textOf(sandbox: Sandbox, { path, sizeBytes }: Entry, signal: AbortSignal): Promise<string | undefined> {
  if (sizeBytes > MAX_TEXT_BYTES) return undefined;
  const params = { path, encoding: "auto", maxBytes: MAX_TEXT_BYTES } as const;
  // One that is gone again, or that may not be read, is shown without its text.
  const read = await sandbox.request("file.read", params, { timeoutMs: TIMEOUT_MS, signal }).catch(() => undefined);
  return read === undefined || read.encoding === "base64" ? undefined : read.content;
}
