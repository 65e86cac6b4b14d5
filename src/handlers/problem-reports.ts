import type { Logger } from "../telemetry/logger.ts";
import type { HandlerProblem } from "./handler-description.ts";
import type { ListKind, Replaced } from "../capability/registry.ts";
import type { ServedFile } from "./served-file.ts";

interface Reported {
  readonly problems: readonly HandlerProblem[];
  /** A problem of one function does not affect the rest of the file. */
  readonly isServed: boolean;
}

/** Logs each problem once: an editor may save a broken file many times. */
export class ProblemReports {
  readonly #logger: Logger;
  readonly #files = new Map<string, Reported>();
  #clashes: readonly NameClash[] = [];

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** All current problems. */
  get all(): readonly HandlerProblem[] {
    const clashes = this.#clashes.map(({ file, name, reason, fix }) => ({
      file,
      message: `"${name}" is not served: ${reason}`,
      fix,
    }));
    return [...[...this.#files.values()].flatMap(({ problems }) => problems), ...clashes];
  }

  has(file: string): boolean {
    return this.#files.has(file);
  }

  forget(file: string): void {
    this.#files.delete(file);
  }

  keepOnly(files: readonly string[]): void {
    for (const file of this.#files.keys()) if (!files.includes(file)) this.#files.delete(file);
  }

  report(file: string, reported: Reported): void {
    const { problems, isServed } = reported;
    if (problems.length === 0) {
      if (this.#files.delete(file)) this.#logger.info("handler file works again", { file });
      return;
    }
    const before = this.#files.get(file);
    if (before !== undefined && JSON.stringify(before.problems) === JSON.stringify(problems)) return;
    this.#files.set(file, reported);
    const what = isServed ? "handler" : "handler file";
    for (const { file: at, line, column, message, fix } of problems) {
      this.#logger.error(`${what} cannot be used`, { file: at, line, column, reason: message, fix });
    }
  }

  reportClashes(clashes: readonly NameClash[]): void {
    const known = new Set(this.#clashes.map((clash) => JSON.stringify(clash)));
    this.#clashes = clashes;
    for (const clash of clashes) {
      if (!known.has(JSON.stringify(clash))) this.#logger.error("handler cannot be used", { ...clash });
    }
  }
}

interface NameClash {
  readonly file: string;
  readonly list: ListKind;
  readonly name: string;
  readonly reason: string;
  readonly fix: string;
}

/** The files that lost a name to another one. The first file, sorted by path, keeps the name. */
export function nameClashes(refused: Replaced["refused"], servedFiles: readonly ServedFile[]): readonly NameClash[] {
  const names = new Map(refused.map(({ list, name }) => [`${list} ${name}`, { list, name }]));
  return [...names].flatMap(([key, { list, name }]) => {
    const files = servedFiles.flatMap((served) =>
      namesIn(served, list)
        .filter((own) => own === name)
        .map(() => served.file),
    );
    const isAllRefused = refused.filter((each) => `${each.list} ${each.name}` === key).length === files.length;
    const [owner = ""] = files;
    const losers = isAllRefused ? files : files.slice(1);
    const what = list.slice(0, -1);
    const reason = isAllRefused
      ? `the server has a ${what} "${name}" of its own`
      : `${owner} has a ${what} "${name}" already`;
    return losers.map((file) => ({ file, list, name, reason, fix: "rename one of them" }));
  });
}

function namesIn({ tools, resources, prompts }: ServedFile, list: ListKind): readonly string[] {
  if (list === "tools") return tools.map(({ name }) => name);
  if (list === "prompts") return prompts.map(({ definition }) => definition.name);
  return resources.map(({ definition }) => definition.uri);
}
