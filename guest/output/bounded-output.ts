import type { BoundedText } from "../../contract/guest.ts";
import type { OutputFile, OutputFiles } from "./output-files.ts";
import { OutputBatches, type SendOutput } from "./output-batches.ts";

interface BoundedOutputOptions {
  readonly maxChars: number;
  readonly files: OutputFiles;
  readonly onText: (text: string) => void;
}

/** Keeps head and tail of a text of any length in memory, and writes the whole to a file when it has to cut. */
export class BoundedOutput {
  readonly #maxChars: number;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #files: OutputFiles;
  readonly #onText: (text: string) => void;
  #head = "";
  #tail = "";
  #totalChars = 0;
  #file: OutputFile | undefined;

  constructor(options: BoundedOutputOptions) {
    this.#maxChars = options.maxChars;
    this.#files = options.files;
    this.#onText = options.onText;
  }

  /** Invalid UTF-8 becomes replacement characters. */
  push(chunk: Uint8Array): void {
    this.#add(this.#decoder.decode(chunk, { stream: true }));
  }

  /** The result. Must be called once, at the end. */
  finish(): BoundedText {
    this.#add(this.#decoder.decode());
    this.#file?.close();
    if (this.#file === undefined) return { text: this.#head, totalChars: this.#totalChars };
    return { text: this.#cutText(), totalChars: this.#totalChars, ...this.#file.reference };
  }

  #add(text: string): void {
    if (text === "") return;
    this.#onText(text);
    this.#totalChars += text.length;
    if (this.#file === undefined && this.#totalChars <= this.#maxChars) {
      this.#head += text;
      return;
    }
    if (this.#file === undefined) {
      this.#file = this.#files.create();
      this.#file.write(this.#head);
      this.#tail = this.#head;
      this.#head += text.slice(0, this.#maxChars);
    }
    this.#file.write(text);
    this.#tail += text;
    // Cut rarely, because each cut copies the tail.
    if (this.#tail.length > 4 * this.#maxChars + 65_536) this.#tail = this.#tail.slice(-this.#maxChars);
  }

  #cutText(): string {
    const marker = (cut: number) => `\n[… ${cut} characters cut …]\n`;
    const room = Math.max(0, this.#maxChars - marker(this.#totalChars).length);
    const head = wholeCharacters(this.#head.slice(0, Math.ceil(room / 2)));
    const tailLength = Math.floor(room / 2);
    const tail = tailLength === 0 ? "" : this.#tail.slice(-tailLength).replace(/^[\uDC00-\uDFFF]/u, "");
    return `${head}${marker(this.#totalChars - head.length - tail.length)}${tail}`;
  }
}

function wholeCharacters(text: string): string {
  return /[\uD800-\uDBFF]$/u.test(text) ? text.slice(0, -1) : text;
}

interface CallOutputOptions {
  readonly callId: string;
  readonly maxOutputChars: number;
  readonly files: OutputFiles;
  readonly send: SendOutput;
}

/** The output of one call: streamed while it comes, and bounded in the result. */
export class CallOutput {
  readonly #batches: OutputBatches;
  readonly #stdout: BoundedOutput;
  readonly #stderr: BoundedOutput;

  constructor({ callId, maxOutputChars: maxChars, files, send }: CallOutputOptions) {
    this.#batches = new OutputBatches(callId, send);
    this.#stdout = new BoundedOutput({ maxChars, files, onText: (text) => this.#batches.add("stdout", text) });
    this.#stderr = new BoundedOutput({ maxChars, files, onText: (text) => this.#batches.add("stderr", text) });
  }

  readonly onStdout = (chunk: Buffer): void => this.#stdout.push(chunk);
  readonly onStderr = (chunk: Buffer): void => this.#stderr.push(chunk);

  /** Must be called once, at the end. */
  finish(): { stdout: BoundedText; stderr: BoundedText } {
    const texts = { stdout: this.#stdout.finish(), stderr: this.#stderr.finish() };
    this.#batches.finish();
    return texts;
  }
}
