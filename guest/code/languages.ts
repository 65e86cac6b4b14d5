import type { Language } from "../../contract/guest.ts";
import { execPath } from "node:process";
import { join } from "node:path";
import { errorCode, Failure } from "../failure.ts";
import { findProgram } from "../find-program.ts";
import type { Launcher } from "../processes/running-process.ts";
import { Interpreter } from "./interpreter.ts";

export interface LanguageOptions {
  readonly launcher: Launcher;
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  /** The interpreter behind a version manager's shim, once it is known. */
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
