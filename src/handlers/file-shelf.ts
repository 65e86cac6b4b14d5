import type { Prompt, Tool } from "../capability/registry.ts";
import type { DescribedFile } from "./describe-file.ts";
import type { HandlerProblem } from "./handler-description.ts";
import {
  promptOf,
  resourceOf,
  type Runner,
  type ServedFile,
  type ServedResource,
  toolOfDefinition,
  toolOfFunction,
} from "./served-file.ts";

/** What a file brings, and what it was made of. What did not change keeps its object, for others remember by it. */
export class FileShelf implements ServedFile {
  readonly file: string;
  runner: Runner;
  readonly problems: readonly HandlerProblem[];
  readonly dependencies: ReadonlySet<string>;
  /** The code that it runs, by path: what is on the disk may be something else by now. */
  readonly sources: ReadonlyMap<string, string>;
  readonly #made = {
    tools: new Map<string, Tool>(),
    resources: new Map<string, ServedResource>(),
    prompts: new Map<string, Prompt>(),
  };

  constructor(described: DescribedFile, runner: Runner, before?: FileShelf) {
    this.file = described.file;
    this.runner = runner;
    this.dependencies = new Set(described.dependencies);
    this.sources = described.sources;
    // Tools made earlier ask the shelf of their time who runs them.
    this.home = before?.home ?? this;
    const { home } = this;
    const old = before === undefined ? undefined : before.#made;
    const problems = [...described.problems];
    const keep = <T>({ made, earlier }: Kept<T>, source: unknown, make: () => T): void => {
      const key = JSON.stringify(source);
      try {
        made.set(key, earlier?.get(key) ?? make());
      } catch (error) {
        problems.push({ file: this.file, message: error instanceof Error ? error.message : String(error) });
      }
    };
    const tools = { made: this.#made.tools, earlier: old?.tools };
    const resources = { made: this.#made.resources, earlier: old?.resources };
    const prompts = { made: this.#made.prompts, earlier: old?.prompts };
    for (const handler of described.handlers) keep(tools, handler, () => toolOfFunction(home, handler));
    for (const definition of described.definitions) {
      if (definition.kind === "handler") keep(tools, definition, () => toolOfDefinition(home, definition));
      else if (definition.kind === "resource") keep(resources, definition, () => resourceOf(home, definition));
      else keep(prompts, definition, () => promptOf(home, definition));
    }
    this.problems = problems;
  }

  get tools(): readonly Tool[] {
    return [...this.#made.tools.values()];
  }

  get resources(): readonly ServedResource[] {
    return [...this.#made.resources.values()];
  }

  get prompts(): readonly Prompt[] {
    return [...this.#made.prompts.values()];
  }

  /** The one object that all tools of this file, old and new, look at. */
  readonly home: ServedFile;

  /** What the file is now has a problem that this does not have. */
  isBetterThan({ isBroken, problems }: DescribedFile): boolean {
    const known = new Set(this.problems.map(({ message }) => message));
    return isBroken || problems.some(({ message }) => !known.has(message));
  }

  runBy(runner: Runner): void {
    this.runner = runner;
    this.home.runner = runner;
  }
}

interface Kept<T> {
  readonly made: Map<string, T>;
  readonly earlier: ReadonlyMap<string, T> | undefined;
}
