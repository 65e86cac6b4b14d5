import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { outputPattern, type ReadmeCommand, type ReadmeStep, readmeSteps } from "./readme-commands.ts";
import type { Ended, Terminal } from "./terminal.ts";

const PORT = "8080";
/** A question, and the answer that the README shows. */
const QUESTION = /\[y\/N\] (.+)$/;
/** It runs whatever runs this. */
const SKIPPED = "npm test";

export interface Reader {
  /** The README's text. */
  readonly markdown: string;
  /** Where the reader clones into. */
  readonly folder: string;
  /** Stands in the place of 8080, which may be taken here. */
  readonly port: number;
  /** Opens a terminal in the clone; the first time, where the clone is to be. */
  open(inClone: boolean): Promise<Terminal>;
  /** Called when the clone is there. */
  cloned?(clone: string): Promise<void>;
}

export interface Walked extends Ended {
  readonly line: string;
  /** What the README says that the screen shows. */
  readonly shown: RegExp;
  /** What the set-up and the server said before, where one was started. */
  readonly before?: string;
}

/** Types every command of the README. A server goes on until the next one starts, or the reader leaves. */
export class ReadmeWalk {
  readonly #reader: Reader;
  readonly #terminals: Terminal[] = [];
  #serving: Terminal | undefined;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  async *commands(): AsyncGenerator<Walked> {
    for (const step of readmeSteps(this.#reader.markdown.replaceAll(PORT, String(this.#reader.port))))
      yield* this.#take(step);
  }

  async leave(): Promise<void> {
    await this.#serving?.interrupt();
    for (const terminal of this.#terminals) await terminal.close();
  }

  async *#take({ commands, config }: ReadmeStep): AsyncGenerator<Walked> {
    const clone = join(this.#reader.folder, "owlclaw");
    if (config !== undefined) writeFileSync(join(clone, "mcp-server.yaml"), config);
    const terminal = await this.#reader.open(this.#terminals.length > 0);
    this.#terminals.push(terminal);
    for (const command of commands) {
      if (command.line === SKIPPED) continue;
      const ended = await (/ start /.test(command.line) ? this.#serve(terminal, command) : run(terminal, command));
      yield { line: command.line, shown: outputPattern(command.output), ...ended };
      if (command.line.startsWith("git clone")) await this.#reader.cloned?.(clone);
    }
  }

  async #serve(terminal: Terminal, { line }: ReadmeCommand): Promise<Ended & { before: string }> {
    await this.#serving?.interrupt();
    this.#serving = terminal;
    terminal.begin(line);
    const screen = await terminal.saw(/^ {2}dashboard .*\n/m);
    const at = Math.max(0, screen.indexOf("OwlClaw MCP server"));
    return { status: 0, screen: screen.slice(at), before: screen.slice(0, at) };
  }
}

function run(terminal: Terminal, { line, output }: ReadmeCommand): Promise<Ended> {
  const answer = output.map((shown) => QUESTION.exec(shown)?.[1]).find((found) => found !== undefined);
  if (answer === undefined) return terminal.run(line);
  terminal.begin(line);
  return terminal.answer(/\[y\/N\] $/, answer);
}
