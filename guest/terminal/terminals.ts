import type { GuestParams } from "../../contract/guest.ts";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { findProgram } from "../find-program.ts";
import type { SendOutput } from "../output/output-batches.ts";
import type { Workspace } from "../paths.ts";
import type { Launcher, RunningProcess } from "../processes/running-process.ts";

const BATCH_MS = 20;
/** Of a flood only the end of each batch is sent. */
const BATCH_CHARS_MAX = 65_536;

interface TerminalOptions {
  readonly launcher: Launcher;
  readonly workspace: Workspace;
  readonly environment: Readonly<Record<string, string>>;
  readonly send: SendOutput;
  readonly resolvePython: (found: string) => Promise<string>;
}

/** Shells on terminals, for operators. */
export class Terminals {
  readonly #options: TerminalOptions;
  readonly #open = new Map<string, RunningProcess>();

  constructor(options: TerminalOptions) {
    this.#options = options;
  }

  /** Runs until the shell ends or the signal aborts. */
  async run(
    { callId, cols, rows }: GuestParams["terminal.run"],
    signal: AbortSignal,
  ): Promise<{ exitCode: number | null }> {
    const child = await this.#launch(cols, rows);
    const output = new TerminalOutput(callId, this.#options.send);
    child.stdout.onData((chunk) => output.add(chunk));
    child.stderr.onData((chunk) => output.add(chunk));
    this.#open.set(callId, child);
    const end = (): void => void child.end();
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    try {
      const { code } = await child.exited;
      await Promise.all([child.stdout.drain(), child.stderr.drain()]);
      output.flush();
      return { exitCode: code };
    } finally {
      signal.removeEventListener("abort", end);
      this.#open.delete(callId);
      await child.end();
      child.release();
    }
  }

  input({ callId, text }: GuestParams["terminal.input"]): Record<string, never> {
    this.#tell(callId, { input: text });
    return {};
  }

  resize({ callId, cols, rows }: GuestParams["terminal.resize"]): Record<string, never> {
    this.#tell(callId, { resize: [cols, rows] });
    return {};
  }

  #tell(callId: string, request: object): void {
    const child = this.#open.get(callId);
    if (child === undefined) throw new Failure("unknown_process", "the terminal has ended", "open another one");
    child.input.write(`${JSON.stringify(request)}\n`);
  }

  async #launch(cols: number, rows: number): Promise<RunningProcess> {
    const { launcher, workspace, environment, resolvePython } = this.#options;
    const { PATH } = environment;
    const python = findProgram("python3", PATH);
    if (python === undefined)
      throw new Failure(
        "interpreter_missing",
        "a terminal needs python3, which is not in this sandbox",
        "use shell_exec",
      );
    const shell = findProgram("bash", PATH) ?? "/bin/sh";
    const script = join(import.meta.dirname, "terminal.py");
    return launcher.launch({
      argv: [await resolvePython(python), "-I", script, String(cols), String(rows), shell],
      cwd: workspace.root,
      env: { ...environment, PWD: workspace.root, TERM: "xterm-256color" },
      stdin: "pipe",
    });
  }
}

/** The output of a terminal, in batches. */
class TerminalOutput {
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
