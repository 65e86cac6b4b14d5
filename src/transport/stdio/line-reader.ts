import { OwlError } from "../../errors/owl-error.ts";

const NEWLINE = 0x0a;

export type Line = { readonly ok: true; readonly bytes: Buffer } | { readonly ok: false; readonly error: OwlError };

/** Cuts a stream of bytes into lines, whatever the chunks. A line that is too long is refused once and skipped to its end. */
export class LineReader {
  readonly #maxBytes: number;
  readonly #onLine: (line: Line) => void;
  #parts: Buffer[] = [];
  #size = 0;
  #skipping = false;

  constructor(maxBytes: number, onLine: (line: Line) => void) {
    this.#maxBytes = maxBytes;
    this.#onLine = onLine;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, start);
      if (end === -1) break;
      this.#append(chunk.subarray(start, end));
      this.#finish();
      start = end + 1;
    }
    if (start < chunk.length) this.#append(chunk.subarray(start));
  }

  /** The stream has ended; what came without a newline still counts. */
  end(): void {
    if (this.#size > 0 || this.#skipping) this.#finish();
  }

  #append(part: Buffer): void {
    if (this.#skipping) return;
    this.#size += part.length;
    if (this.#size > this.#maxBytes) {
      this.#skipping = true;
      this.#parts = [];
      const error = new OwlError("invalid_request", `the line is longer than ${this.#maxBytes} bytes`, {
        facts: { limit: this.#maxBytes },
        hint: "send less at once, or raise stdio.maxLineBytes",
      });
      this.#onLine({ ok: false, error });
    } else this.#parts.push(part);
  }

  #finish(): void {
    const parts = this.#parts;
    const skipped = this.#skipping;
    this.#parts = [];
    this.#size = 0;
    this.#skipping = false;
    if (skipped) return;
    const [first] = parts;
    this.#onLine({ ok: true, bytes: parts.length === 1 && first !== undefined ? first : Buffer.concat(parts) });
  }
}
