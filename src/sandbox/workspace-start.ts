import type { GuestClient } from "./guest-client.ts";
import type { GuestResult } from "../../contract/guest.ts";
import { createHash } from "node:crypto";

/** Of so many files one can say later what has become of them. */
export const MAX_LISTED = 5000;
const TIMEOUT_MS = 5000;
const MAX_TEXT_BYTES = 65_536;
const MAX_ALL_BYTES = 8 * 1024 * 1024;
/** Small enough that a guest has time for others between two. */
const BATCH_BYTES = 524_288;
const BATCH_FILES = 256;
const BATCH_TIMEOUT_MS = 5000;

/** A file as it was when its sandbox began. */
interface StartFile {
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

export type WorkspaceEntry = GuestResult<"file.list">["entries"][number];

/** A text, or why there is none: `full` and `late` are for those that were not asked for any more. */
export type FoundText = { readonly text: string } | { readonly missing: "large" | "binary" | "gone" | "full" | "late" };

interface TextsRequest {
  readonly files: readonly WorkspaceEntry[];
  /** As `performance.now()` counts; what is not there by then is late. */
  readonly untilMs: number;
  readonly signal: AbortSignal;
}

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

interface StoredText {
  readonly text: string;
  holders: number;
}

/** Texts that are kept for a while, each once: sandboxes that begin with the same folder begin with the same texts. */
export class TextStore {
  readonly #maxChars: number;
  readonly #texts = new Map<string, StoredText>();
  #chars = 0;

  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  /** How much is kept for everybody. */
  get chars(): number {
    return this.#chars;
  }

  /** The text as it is kept; nothing where there is no room for another one. */
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

  /** As often as it was kept. */
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

/** A map of texts alone would compare long ones of the same length with each other, letter by letter. */
function keyOf(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}
