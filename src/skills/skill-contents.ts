import { createHash } from "node:crypto";
import type { ReadFile } from "./read-inside.ts";

/** One file's bytes as clients get them. */
export interface SkillContent {
  readonly fingerprint: string;
  readonly modifiedMs: number;
  readonly bytes: Buffer;
  /** Undefined when the bytes are no UTF-8. */
  readonly text: string | undefined;
  /** `sha256:` and 64 hexadecimal digits, as the skills extension writes it. */
  readonly digest: string;
}

/** A byte order mark is part of the file and stays. */
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function toContent({ bytes, fingerprint, modifiedMs }: ReadFile): SkillContent {
  const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  return { fingerprint, modifiedMs, bytes, text: decode(bytes), digest };
}

export function decode(bytes: Uint8Array): string | undefined {
  try {
    return UTF8.decode(bytes);
  } catch {
    // No text: it travels as base64.
    return undefined;
  }
}

/** What was read lately, up to a number of bytes; the longest unused goes first. */
export class ContentCache {
  readonly #maxBytes: number;
  readonly #contents = new Map<string, SkillContent>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(path: string, fingerprint: string): SkillContent | undefined {
    const content = this.#contents.get(path);
    if (content?.fingerprint !== fingerprint) return undefined;
    this.#contents.delete(path);
    this.#contents.set(path, content);
    return content;
  }

  set(path: string, content: SkillContent): void {
    this.delete(path);
    if (costOf(content) > this.#maxBytes / 4) return;
    this.#contents.set(path, content);
    this.#bytes += costOf(content);
    for (const oldest of this.#contents.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.delete(oldest);
    }
  }

  delete(path: string): void {
    const content = this.#contents.get(path);
    if (content === undefined) return;
    this.#contents.delete(path);
    this.#bytes -= costOf(content);
  }
}

/** The text is kept beside the bytes, in at most two bytes a character; so is, once it was read, the JSON of both. */
function costOf({ bytes, text = "" }: SkillContent): number {
  return 2 * bytes.length + 2 * text.length;
}
