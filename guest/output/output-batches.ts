import type { GuestOutput } from "../../contract/guest.ts";

const BATCH_MS = 50;
const BATCH_CHARS = 8_192;
/** The beginning of a flood is streamed; its end is in the result. */
const STREAMED_CHARS_MAX = 262_144;
/** Cost of a notification beside its text, in characters. The server counts the same. */
const NOTIFICATION_CHARS = 16;

export type SendOutput = (notification: GuestOutput) => void;

/** Streams output in batches. */
export class OutputBatches {
  readonly #callId: string;
  readonly #send: SendOutput;
  #pieces: { stream: GuestOutput["stream"]; text: string }[] = [];
  #pendingChars = 0;
  #hasSent = false;
  #charsLeft = STREAMED_CHARS_MAX;
  #timer: NodeJS.Timeout | undefined;

  constructor(callId: string, send: SendOutput) {
    this.#callId = callId;
    this.#send = send;
  }

  add(stream: GuestOutput["stream"], text: string): void {
    if (this.#charsLeft <= 0) return;
    const piece = text.slice(0, this.#charsLeft);
    this.#charsLeft -= piece.length;
    this.#pendingChars += piece.length;
    const last = this.#pieces.at(-1);
    if (last?.stream === stream) last.text += piece;
    else {
      this.#charsLeft -= NOTIFICATION_CHARS;
      this.#pieces.push({ stream, text: piece });
    }
    if (this.#pendingChars >= BATCH_CHARS) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#pendingChars = 0;
    this.#hasSent = true;
    for (const { stream, text } of this.#pieces.splice(0)) this.#send({ callId: this.#callId, stream, text });
  }

  /** Nothing is sent after this. A call that ends before its first batch sends none: the result has everything. */
  finish(): void {
    if (this.#hasSent) this.flush();
    clearTimeout(this.#timer);
    this.#charsLeft = 0;
    this.#pieces = [];
  }
}
