import type { TerminalSize } from "../../contract/guest.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

/** The part of a sandbox that a terminal uses. */
export type TerminalHost = Pick<Sandbox, "runTerminal" | "request">;

export interface OperatorTerminalOptions {
  readonly sandbox: TerminalHost;
  readonly size: TerminalSize;
  readonly show: (text: string) => void;
}

const TIMEOUT_MS = 10_000;
const MAX_LINE_CHARS = 2000;
const PARTS = /\r\n|[\s\S]/gu;
/**
 * All control characters except tab, backspace, delete and escape. Escape begins the codes of keys such as the arrows.
 */
const RUNS_A_LINE = /[\u0000-\u0007\u000b-\u001a\u001c-\u001f\u0080-\u009f]/;

/** A shell of an operator in a sandbox. */
export class OperatorTerminal {
  /** Rejects with the reason when the shell cannot be opened. */
  readonly ready: Promise<void>;
  readonly #sandbox: TerminalHost;
  readonly #stopping = new AbortController();
  #callId: string | undefined;
  #isOpen = true;
  #rest = "";

  constructor({ sandbox, size, show }: OperatorTerminalOptions) {
    this.#sandbox = sandbox;
    this.ready = new Promise((resolve, reject) => {
      const ended = sandbox.runTerminal(size, {
        signal: this.#stopping.signal,
        onOutput: ({ text }) => {
          show(text);
          // The first output is the prompt: from now on the shell accepts input.
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
    // The next caller that awaits `ready` gets the error.
    this.ready.catch(() => undefined);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * The text to record before the shell receives this input: everything typed up to the last character that may run a
   * command. A shell can run a line at any control character (Ctrl-O, Ctrl-J, Ctrl-D), and a program can act on any
   * character: `takeRest` returns the rest.
   */
  linesWith(input: string): string[] {
    const lines: string[] = [];
    for (const part of input.match(PARTS) ?? []) {
      const isLineEnd = part === "\r\n" || part === "\r" || part === "\n";
      if (!isLineEnd) this.#rest += part;
      if (isLineEnd || RUNS_A_LINE.test(part) || this.#rest.length >= MAX_LINE_CHARS) lines.push(this.takeRest());
    }
    return lines;
  }

  /** Returns the typed text that is not recorded yet. */
  takeRest(): string {
    const rest = this.#rest;
    this.#rest = "";
    return rest;
  }

  /** Puts text that could not be recorded back in front of newer text. */
  putBack(rest: string): void {
    this.#rest = rest + this.#rest;
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
