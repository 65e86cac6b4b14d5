import type { GuestClient } from "./guest-client.ts";
import type { GuestResult } from "../../contract/guest.ts";
import { createHash } from "node:crypto";

/** Changes can be shown for up to this many files. */
export const MAX_LISTED = 5000;
const TIMEOUT_MS = 5000;
const MAX_TEXT_BYTES = 65_536;
const MAX_ALL_BYTES = 8 * 1024 * 1024;
/** Small, so that a guest can serve other requests between two batches. */
const BATCH_BYTES = 524_288;
const BATCH_FILES = 256;
const BATCH_TIMEOUT_MS = 5000;

/** A file as it was when its sandbox began. */
interface StartFile {
  /** Changes with every change of the file. */
  readonly mark: string;
  readonly sizeBytes: number;
  readonly content: FoundText;
}

/** The files of a workspace when its sandbox began. */
export interface WorkspaceStart {
  readonly files: ReadonlyMap<string, StartFile>;
  /** False when the folder has more files than are listed. */
  readonly isWhole: boolean;
}

/** `undefined` when the files cannot be listed in time: the sandbox starts nevertheless. */
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

/** Programs can set the modification time, but not the change time. */
export function markOf({ sizeBytes, modifiedAt, changedAtMs }: WorkspaceEntry): string {
  return `${sizeBytes} ${modifiedAt} ${changedAtMs}`;
}

function stored(found: FoundText, store: TextStore): FoundText {
  if (!("text" in found)) return found;
  const text = store.keep(found.text);
  return text === undefined ? { missing: "full" } : { text };
}

export type WorkspaceEntry = GuestResult<"file.list">["entries"][number];

/** A text, or why there is none. `full` and `late`: the file was not read because of the limits. */
export type FoundText = { readonly text: string } | { readonly missing: "large" | "binary" | "gone" | "full" | "late" };

interface TextsRequest {
  readonly files: readonly WorkspaceEntry[];
  /** In the time of `performance.now()`; files that are not read by then are `late`. */
  readonly untilMs: number;
  readonly signal: AbortSignal;
}

/** The texts of small files, by path. The guest opens them; the server checks their length again. */
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

/** Files above the limits are not requested. */
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

interface StoredText {
  readonly text: string;
  holders: number;
}

/** Stores each distinct text once, with a reference count: sandboxes with the same folder start with the same texts. */
export class TextStore {
  readonly #maxChars: number;
  readonly #texts = new Map<string, StoredText>();
  #chars = 0;

  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  /** The total size. */
  get chars(): number {
    return this.#chars;
  }

  /** Returns the stored text; `undefined` when the store is full. */
  keep(text: string): string | undefined {
    const key = keyOf(text);
    const stored = this.#texts.get(key);
    if (stored !== undefined) {
      stored.holders += 1;
      return stored.text;
    }
    if (this.#chars + text.length > this.#maxChars) return undefined;
    this.#texts.set(key, { text, holders: 1 });
    this.#chars += text.length;
    return text;
  }

  /** Must be called once for each `keep`. */
  drop(text: string): void {
    const key = keyOf(text);
    const stored = this.#texts.get(key);
    if (stored === undefined) return;
    stored.holders -= 1;
    if (stored.holders > 0) return;
    this.#texts.delete(key);
    this.#chars -= text.length;
  }
}

/** A digest, so that the map does not compare long texts. */
function keyOf(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}
