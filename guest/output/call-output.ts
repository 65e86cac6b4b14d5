import type { BoundedText } from "../../contract/guest.ts";
import { BoundedOutput } from "./bounded-output.ts";
import { OutputBatches, type SendOutput } from "./output-batches.ts";
import type { OutputFiles } from "./output-files.ts";

interface CallOutputOptions {
  readonly callId: string;
  readonly maxOutputChars: number;
  readonly files: OutputFiles;
  readonly send: SendOutput;
}

/** The output of one call: sent while it comes, and bounded in the result. */
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

  /** Call it once, at the end. */
  finish(): { stdout: BoundedText; stderr: BoundedText } {
    const texts = { stdout: this.#stdout.finish(), stderr: this.#stderr.finish() };
    this.#batches.finish();
    return texts;
  }
}
