import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";

/** Stands before every prompt, with the status of the last command. */
const PROMPT = /\u0001(\d+)\u0001$/;
const INTERRUPT = "\u0003";
const ESCAPES = /\u001B\[[\d;?]*[A-Za-z]|\r/g;

export interface TerminalOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The command that runs the shell; default: `sh`, here. */
  readonly shell?: string;
}

export interface Ended {
  readonly status: number;
  readonly screen: string;
}

/** A shell at a terminal: what is typed into it runs as it does for a person, questions included. */
export class Terminal {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #closed: Promise<void>;
  #written = "";
  #told: () => void = () => undefined;

  private constructor({ cwd, env, shell = "sh" }: TerminalOptions) {
    // Wide, so that no table is cut; the echo and the prompts would stand between the lines of what runs.
    const quiet = String.raw`stty -echo cols 1000 && export ENV= PS2= PS1="$(printf '\001$?\001')" && exec ${shell}`;
    this.#child = spawn("script", ["--quiet", "--return", "--flush", "--command", quiet, "/dev/null"], {
      cwd,
      env: { ...env, NO_COLOR: "1", TERM: "dumb", SHELL: "/bin/sh" },
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.#written += text;
        this.#told();
      });
    // Whoever types into a terminal that has closed learns so from what it waits for.
    this.#child.stdin.on("error", () => undefined);
    this.#closed = new Promise((resolve) => this.#child.once("close", () => resolve()));
    void this.#closed.then(() => this.#told());
  }

  static async open(options: TerminalOptions): Promise<Terminal> {
    const terminal = new Terminal(options);
    await terminal.#until(PROMPT);
    return terminal;
  }

  /** Runs a command to its end. */
  async run(line: string): Promise<Ended> {
    this.begin(line);
    return this.#ended();
  }

  /** Starts a command that goes on. */
  begin(line: string): void {
    this.#written = "";
    this.#child.stdin.write(`${line}\n`);
  }

  /** What the command that goes on has said once it has said this. */
  async saw(pattern: RegExp): Promise<string> {
    return (await this.#until(pattern)).input;
  }

  /** Answers a question of the command that goes on, and waits for its end. */
  async answer(question: RegExp, text: string): Promise<Ended> {
    await this.#until(question);
    this.#child.stdin.write(`${text}\n`);
    return this.#ended();
  }

  /** Ends it as a person does. */
  async interrupt(): Promise<void> {
    this.#child.stdin.write(INTERRUPT);
    await this.#until(PROMPT);
  }

  /** What still runs in it is told that the terminal has gone. */
  async close(): Promise<void> {
    if (PROMPT.test(this.#screen())) this.#child.stdin.write("exit\n");
    else this.#child.kill("SIGKILL");
    await this.#closed;
  }

  async #ended(): Promise<Ended> {
    const found = await this.#until(PROMPT);
    return { status: Number(found[1]), screen: found.input.replace(PROMPT, "") };
  }

  async #until(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.#screen());
      if (found !== null) return found;
      if (this.#child.exitCode !== null || this.#child.signalCode !== null)
        throw new Error(`the terminal closed before ${String(pattern)}:\n${this.#screen()}`);
      await new Promise<void>((resolve) => (this.#told = resolve));
    }
  }

  #screen(): string {
    return this.#written.replaceAll(ESCAPES, "");
  }
}
