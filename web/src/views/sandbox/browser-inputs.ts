import type { BrowserInput } from "../../../../src/operator/contract-files.ts";
import { post } from "../../server/api.ts";

/** Sends one request at a time, so that input arrives in order. Typing and scrolling in the meantime are merged. */
export class BrowserInputs {
  readonly #path: string;
  readonly #onError: (error: unknown) => void;
  readonly #waiting: BrowserInput[] = [];
  #isSending = false;

  constructor(path: string, onError: (error: unknown) => void) {
    this.#path = path;
    this.#onError = onError;
  }

  send(input: BrowserInput): void {
    const last = this.#waiting.pop();
    this.#waiting.push(...(last === undefined ? [input] : together(last, input)));
    if (!this.#isSending) void this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift())
      await post(this.#path, next).then(() => this.#onError(undefined), this.#onError);
    this.#isSending = false;
  }
}

function together(first: BrowserInput, second: BrowserInput): readonly BrowserInput[] {
  if ("type" in first && "type" in second) return [{ type: first.type + second.type }];
  if ("scroll" in first && "scroll" in second)
    return [{ scroll: { ...second.scroll, dy: first.scroll.dy + second.scroll.dy } }];
  return [first, second];
}
