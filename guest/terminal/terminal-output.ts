import type { SendOutput } from "../output/output-batches.ts";

const BATCH_MS = 20;
/** Of a flood only the end of each batch is worth showing. */
const BATCH_CHARS_MAX = 65_536;

/** What a terminal shows, a few pieces at a time. */
export class TerminalOutput {
  readonly #callId: string;
  readonly #send: SendOutput;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #pending = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(callId: string, send: SendOutput) {
    this.#callId = callId;
    this.#send = send;
  }

  add(chunk: Buffer): void {
    this.#pending += this.#decoder.decode(chunk, { stream: true });
    if (this.#pending.length > 2 * BATCH_CHARS_MAX) this.#pending = this.#pending.slice(-BATCH_CHARS_MAX);
    this.#timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = this.#pending.slice(-BATCH_CHARS_MAX);
    this.#pending = "";
    if (text !== "") this.#send({ callId: this.#callId, stream: "stdout", text });
  }
}
