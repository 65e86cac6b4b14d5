import type { TerminalSize } from "../sandbox/guest-methods.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

/** Where one is opened. */
export type TerminalHost = Pick<Sandbox, "runTerminal" | "request">;

export interface OperatorTerminalOptions {
  readonly sandbox: TerminalHost;
  readonly size: TerminalSize;
  readonly show: (text: string) => void;
}

const TIMEOUT_MS = 10_000;
const MAX_LINE_CHARS = 2000;

/** A shell of an operator's own in a sandbox. */
export class OperatorTerminal {
  /** Rejects with what keeps it from opening. */
  readonly ready: Promise<void>;
  readonly #sandbox: TerminalHost;
  readonly #stopping = new AbortController();
  #callId: string | undefined;
  #isOpen = true;
  #line = "";

  constructor({ sandbox, size, show }: OperatorTerminalOptions) {
    this.#sandbox = sandbox;
    this.ready = new Promise((resolve, reject) => {
      const ended = sandbox.runTerminal(size, {
        signal: this.#stopping.signal,
        onOutput: ({ text }) => {
          show(text);
          // The first that it shows is its prompt: from here on it takes what is typed.
          resolve();
        },
        onOpen: (callId) => (this.#callId = callId),
      });
      ended.then(
        () => show("\r\n[the shell has ended]\r\n"),
        (error: unknown) => reject(error instanceof Error ? error : new Error(String(error))),
      );
      void ended
        .finally(() => {
          this.#isOpen = false;
          resolve();
        })
        .catch(() => undefined);
    });
    // Whoever asks for it next hears of it.
    this.ready.catch(() => undefined);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The lines that this input completes, as they were typed: what a program made of them is not known. */
  linesWith(input: string): string[] {
    const [first = "", ...rest] = input.split(/\r\n|\r|\n/);
    const parts = [this.#line + first, ...rest];
    this.#line = (parts.pop() ?? "").slice(-MAX_LINE_CHARS);
    return parts.map((line) => line.slice(0, MAX_LINE_CHARS));
  }

  async type(text: string): Promise<void> {
    if (this.#callId === undefined) return;
    await this.#sandbox.request("terminal.input", { callId: this.#callId, text }, { timeoutMs: TIMEOUT_MS });
  }

  async resize(size: TerminalSize): Promise<void> {
    if (this.#callId === undefined) return;
    await this.#sandbox.request("terminal.resize", { callId: this.#callId, ...size }, { timeoutMs: TIMEOUT_MS });
  }

  close(): void {
    this.#stopping.abort();
  }
}
