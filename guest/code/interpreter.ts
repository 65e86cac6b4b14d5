import type { ProcessInfo, Language } from "../../contract/guest.ts";
import type { Launcher, ProcessExit, RunningProcess } from "../processes/running-process.ts";
import { readLines, isRecord } from "../processes/line-reader.ts";
import { deferred, type Deferred } from "../deferred.ts";
import { execPath } from "node:process";
import { join } from "node:path";
import { errorCode, Failure } from "../failure.ts";
import { findProgram } from "../find-program.ts";

/** Pictures are the largest part of an answer; the driver limits them to less. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

interface InterpreterOptions {
  readonly launcher: Launcher;
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly isNode: boolean;
}

export interface OutputListeners {
  readonly onStdout: (chunk: Buffer) => void;
  readonly onStderr: (chunk: Buffer) => void;
}

/** The result of a request: the driver's answer, or its exit. */
export type Reply =
  | { readonly status: "answered"; readonly answer: unknown }
  | { readonly status: "exited"; readonly exit: ProcessExit };

/** A running driver, which handles one request at a time. */
export class Interpreter {
  readonly #process: RunningProcess;
  #pending: { readonly id: number; readonly reply: Deferred<Reply> } | undefined;
  #lastId = 0;
  #exit: ProcessExit | undefined;
  #isAlive = true;

  private constructor(child: RunningProcess) {
    this.#process = child;
    if (child.answers === undefined) throw new Error("the interpreter has no channel");
    readLines(child.answers, {
      onLine: (line) => this.#onAnswer(line),
      maxLineBytes: ANSWER_BYTES_MAX,
    });
    this.listen({ onStdout: () => {}, onStderr: () => {} });
    void child.exited.then((exit) => {
      this.#isAlive = false;
      this.#exit = exit;
      this.#settle({ status: "exited", exit });
    });
  }

  static async start({ launcher, ...program }: InterpreterOptions): Promise<Interpreter> {
    return new Interpreter(await launcher.launch({ ...program, stdin: "channel" }));
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  async ask(request: object): Promise<Reply> {
    if (this.#exit !== undefined) return { status: "exited", exit: this.#exit };
    this.#lastId += 1;
    const reply = deferred<Reply>();
    this.#pending = { id: this.#lastId, reply };
    this.#process.input.write(`${JSON.stringify({ id: this.#lastId, ...request })}\n`);
    return await reply.promise;
  }

  /** Cancels the open request. Drivers that do not support it are ended. */
  cancel(): void {
    if (this.#pending !== undefined) this.#process.input.write(`${JSON.stringify({ cancel: this.#pending.id })}\n`);
  }

  /** Routes output to this receiver from now on. */
  listen({ onStdout, onStderr }: OutputListeners): void {
    this.#process.stdout.onData(onStdout);
    this.#process.stderr.onData(onStderr);
  }

  async drain(): Promise<void> {
    await Promise.all([this.#process.stdout.drain(), this.#process.stderr.drain()]);
  }

  descendants(): ProcessInfo[] {
    return this.#process.descendants();
  }

  /** User code can write to the channel too: lines that answer no request are ignored. */
  #onAnswer(line: string): void {
    let said: unknown;
    try {
      said = JSON.parse(line);
    } catch {
      return;
    }
    if (isRecord(said) && said["id"] === this.#pending?.id) this.#settle({ status: "answered", answer: said });
  }

  #settle(reply: Reply): void {
    this.#pending?.reply.resolve(reply);
    this.#pending = undefined;
  }

  async end(): Promise<void> {
    await this.#process.end();
    await this.drain();
    this.#process.release();
    this.#isAlive = false;
  }
}

export interface LanguageOptions {
  readonly launcher: Launcher;
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  /** The path of the interpreter behind a version manager's shim, once it is known. */
  readonly resolvePython: (found: string) => Promise<string>;
}

export function findInterpreter(language: Language, searchPath: string | undefined): string | undefined {
  return language === "python" ? findProgram("python3", searchPath) : (findProgram("node", searchPath) ?? execPath);
}

export async function startInterpreter(language: Language, options: LanguageOptions): Promise<Interpreter> {
  const { launcher, cwd, environment } = options;
  const searchPath = environment["PATH"];
  const found = findInterpreter(language, searchPath);
  if (found === undefined) throw missing(language, `python3 is in none of the folders of PATH (${searchPath ?? ""})`);
  try {
    const argv = language === "python" ? pythonArgv(await options.resolvePython(found)) : nodeArgv(found);
    const isNode = language === "node";
    return await Interpreter.start({ launcher, argv, cwd, env: { ...environment, PWD: cwd }, isNode });
  } catch (error) {
    if (errorCode(error) === "ENOENT" || errorCode(error) === "EACCES")
      throw missing(language, `${found} cannot be run`);
    throw error;
  }
}

function pythonArgv(python: string): [string, ...string[]] {
  return [python, join(import.meta.dirname, "driver.py")];
}

function nodeArgv(node: string): [string, ...string[]] {
  return [node, join(import.meta.dirname, "node-driver.mjs")];
}

function missing(language: Language, reason: string): Failure {
  const hint = "use the other language or a template that has it, or put it on the sandbox's PATH";
  return new Failure("interpreter_missing", `there is no interpreter for ${language}: ${reason}`, hint);
}
