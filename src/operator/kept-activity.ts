import type { Activity } from "./activity.ts";

const MAX_ENTRIES = 500;
const MAX_TEXT_CHARS = 131_072;
/** Two of the largest pictures, or many of the usual ones. */
const MAX_PICTURE_CHARS = 4_000_000;

/** What is kept of one sandbox for whoever looks later. Pictures have room of their own: they drive out older ones, and no text. */
export class KeptActivity {
  readonly #entries: Activity[] = [];
  #textChars = 0;
  #pictureChars = 0;

  add(activity: Activity): void {
    this.#entries.push(activity);
    this.#textChars += textCharsOf(activity);
    this.#pictureChars += pictureCharsOf(activity);
    while (this.#entries.length > MAX_ENTRIES || (this.#textChars > MAX_TEXT_CHARS && this.#entries.length > 1))
      this.#dropOldest();
    for (let at = 0; this.#pictureChars > MAX_PICTURE_CHARS && at < this.#entries.length; at += 1)
      this.#dropPicturesAt(at);
  }

  all(): readonly Activity[] {
    return [...this.#entries];
  }

  #dropOldest(): void {
    const oldest = this.#entries.shift();
    if (oldest === undefined) return;
    this.#textChars -= textCharsOf(oldest);
    this.#pictureChars -= pictureCharsOf(oldest);
  }

  /** From the last on, as many as there is no room for. */
  #dropPicturesAt(at: number): void {
    const entry = this.#entries[at];
    if (entry?.cell?.images === undefined) return;
    const { images, ...cell } = entry.cell;
    const left = [...images];
    while (left.length > 0 && this.#pictureChars > MAX_PICTURE_CHARS)
      this.#pictureChars -= left.pop()?.data.length ?? 0;
    const imagesGone = (cell.imagesGone ?? 0) + images.length - left.length;
    this.#entries[at] = { ...entry, cell: { ...cell, ...(left.length > 0 && { images: left }), imagesGone } };
  }
}

function textCharsOf({ text = "", cell }: Activity): number {
  const { code = "", result = "", error = "" } = cell ?? {};
  return text.length + code.length + result.length + error.length + 100;
}

function pictureCharsOf({ cell }: Activity): number {
  return (cell?.images ?? []).reduce((sum, { data }) => sum + data.length, 0);
}
