import type { GuestClient } from "./guest-client.ts";
import type { GuestResult } from "./guest-methods.ts";

export type WorkspaceEntry = GuestResult<"file.list">["entries"][number];

/** The files of a workspace when its sandbox began. */
export interface WorkspaceStart {
  /** Paths, each with a mark that changes with the file. */
  readonly files: ReadonlyMap<string, string>;
  /** Not of a folder with more files than are listed. */
  readonly isWhole: boolean;
}

/** Of so many files one can say later what has become of them. */
export const MAX_LISTED = 5000;
const TIMEOUT_MS = 5000;

/** Nothing where it cannot be listed in time: the sandbox is worth more than what can be told of it. */
export async function listStart(client: GuestClient, signal: AbortSignal): Promise<WorkspaceStart | undefined> {
  const params = { path: ".", recursive: true, includeHidden: true, maxEntries: MAX_LISTED };
  const listed = await client.request("file.list", params, { timeoutMs: TIMEOUT_MS, signal }).catch(() => undefined);
  if (listed === undefined) return undefined;
  const files = listed.entries.filter(({ type }) => type === "file").map((file) => [file.path, markOf(file)] as const);
  return { files: new Map(files), isWhole: !listed.isTruncated };
}

export function markOf({ sizeBytes, modifiedAt }: WorkspaceEntry): string {
  return `${sizeBytes} ${modifiedAt}`;
}
