import type { OutputListeners } from "./interpreter.ts";

const KEPT_BYTES_MAX = 16_384;

/** What threads, timers and processes print between two runs: it belongs to no call, and the next result shows it. */
export class EarlierOutput implements OutputListeners {
  #chunks: Buffer[] = [];
  #keptBytes = 0;
  #lostBytes = 0;

  readonly onStdout = (chunk: Buffer): void => this.#add(chunk);
  readonly onStderr = (chunk: Buffer): void => this.#add(chunk);

  /** Everything since the last time, in the order in which it came. */
  take(): string | undefined {
    if (this.#chunks.length === 0) return undefined;
    const bytes = Buffer.concat(this.#chunks);
    const lostBytes = this.#lostBytes + Math.max(0, bytes.length - KEPT_BYTES_MAX);
    this.clear();
    // A character that is cut becomes a replacement character.
    const text = bytes.subarray(-KEPT_BYTES_MAX).toString("utf8");
    return lostBytes === 0 ? text : `[… ${lostBytes} bytes before this are not kept …]\n${text}`;
  }

  clear(): void {
    this.#chunks = [];
    this.#keptBytes = 0;
    this.#lostBytes = 0;
  }

  #add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#keptBytes += chunk.length;
    while (this.#keptBytes - (this.#chunks[0]?.length ?? 0) >= KEPT_BYTES_MAX) {
      const lost = this.#chunks.shift()?.length ?? 0;
      this.#keptBytes -= lost;
      this.#lostBytes += lost;
    }
  }
}
