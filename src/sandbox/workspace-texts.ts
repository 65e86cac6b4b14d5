import type { GuestResult } from "../../contract/guest.ts";
import type { GuestClient } from "./guest-client.ts";

export type WorkspaceEntry = GuestResult<"file.list">["entries"][number];

/** A text, or why there is none: `full` and `late` are for those that were not asked for any more. */
export type FoundText = { readonly text: string } | { readonly missing: "large" | "binary" | "gone" | "full" | "late" };

export interface TextsRequest {
  readonly files: readonly WorkspaceEntry[];
  /** As `performance.now()` counts; what is not there by then is late. */
  readonly untilMs: number;
  readonly signal: AbortSignal;
}

const MAX_TEXT_BYTES = 65_536;
const MAX_ALL_BYTES = 8 * 1024 * 1024;
/** Small enough that a guest has time for others between two. */
const BATCH_BYTES = 524_288;
const BATCH_FILES = 256;
const BATCH_TIMEOUT_MS = 5000;

/** The texts of small files, by path. Only the guest opens them; its answers are bounded again out here. */
export async function readTexts(
  guest: Pick<GuestClient, "request">,
  { files, untilMs, signal }: TextsRequest,
): Promise<ReadonlyMap<string, FoundText>> {
  const found = new Map<string, FoundText>();
  for (const batch of batchesOf(files, found)) {
    const isLate = performance.now() >= untilMs;
    const texts = isLate ? [] : await askFor(guest, batch, signal);
    batch.forEach((path, at) => found.set(path, isLate ? { missing: "late" } : (texts[at] ?? { missing: "gone" })));
  }
  return found;
}

/** What is too large, or too much in all, is answered without a question. */
function batchesOf(files: readonly WorkspaceEntry[], found: Map<string, FoundText>): readonly (readonly string[])[] {
  const batches: string[][] = [];
  let all = 0;
  let inBatch = BATCH_BYTES;
  for (const { path, sizeBytes } of files) {
    if (sizeBytes > MAX_TEXT_BYTES) found.set(path, { missing: "large" });
    else if (all + sizeBytes > MAX_ALL_BYTES) found.set(path, { missing: "full" });
    else {
      if (inBatch + sizeBytes > BATCH_BYTES || batches.at(-1)?.length === BATCH_FILES) {
        batches.push([]);
        inBatch = 0;
      }
      batches.at(-1)?.push(path);
      all += sizeBytes;
      inBatch += sizeBytes;
    }
  }
  return batches;
}

async function askFor(
  guest: Pick<GuestClient, "request">,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<readonly FoundText[]> {
  const params = { paths, maxBytes: MAX_TEXT_BYTES };
  const { texts } = await guest.request("file.texts", params, { timeoutMs: BATCH_TIMEOUT_MS, signal });
  return texts.map((each) => ("text" in each && each.text.length > MAX_TEXT_BYTES ? { missing: "large" } : each));
}
