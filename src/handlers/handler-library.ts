import type { Changes } from "../capabilities/changes.ts";
import type { ListKind, Registry } from "../capabilities/registry.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type FileWatch, stateOf, watchFiles } from "../watching/watch-files.ts";
import { type DescribedFile, describeFiles, type DescribeOptions } from "./describe-file.ts";
import { FileShelf } from "./file-shelf.ts";
import { findHandlerFiles } from "./find-files.ts";
import { Generation, type GenerationOptions } from "./generation.ts";
import { nameClashes } from "./name-clashes.ts";
import type { RemoteTarget } from "./workers/remote-call.ts";

const SOURCE = "handlers";

export interface HandlerLibraryOptions extends Pick<
  GenerationOptions,
  "launch" | "cacheFolder" | "maxWorkers" | "maxLineChars" | "useSandbox"
> {
  readonly registry: Registry;
  readonly changes: Changes;
  readonly logger: Logger;
  /** Files, folders or globs, absolute. */
  readonly paths: readonly string[];
  readonly describeTypes: DescribeOptions["describeTypes"];
}

/** Everything that the operator's files bring, kept as the files are. */
export class HandlerLibrary {
  readonly #options: HandlerLibraryOptions;
  readonly #shelves = new Map<string, FileShelf>();
  readonly #generationOf = new Map<string, Generation>();
  readonly #reported = new Map<string, string>();
  #clashes: ReadonlySet<string> = new Set();
  readonly #generations = new Set<Generation>();
  readonly #retired = new Set<Generation>();
  #current: Generation;
  #watch: FileWatch | undefined;
  /** What each file was when it was read, handlers and what they import. */
  readonly #states = new Map<string, string>();
  readonly #changed = new Set<string>();
  #reloading: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: HandlerLibraryOptions) {
    this.#options = options;
    this.#current = this.#newGeneration();
  }

  /** Finds, imports and registers everything. A file that fails is reported and takes no other with it. */
  async load(): Promise<void> {
    const { paths } = this.#options;
    const files = await findHandlerFiles(paths);
    await this.#reportEmpty(paths);
    for (const described of await this.#describe(files, this.#current)) {
      this.#shelve(described, this.#current);
      const shelf = this.#shelves.get(described.file);
      this.#report(described.file, shelf?.problems ?? described.problems, shelf !== undefined);
    }
    this.#publish();
    this.#watchResources(this.#current);
  }

  async #reportEmpty(paths: readonly string[]): Promise<void> {
    for (const path of paths.filter((each) => !each.startsWith("!"))) {
      const found = await findHandlerFiles([path]);
      if (found.length > 0) continue;
      const facts = {
        file: path,
        reason: "no file matches",
        fix: "correct handlers.paths: a file, a folder or a glob",
      };
      this.#options.logger.error("handler file cannot be used", facts);
    }
  }

  /** Follows the files from now on. */
  watch(): void {
    if (this.#watch !== undefined || this.#options.launch.node === undefined) return;
    this.#watch = watchFiles({ paths: this.#watchedPaths() }, (files) => {
      for (const file of files) this.#changed.add(file);
      this.#reloading ??= this.#reloadAll();
    });
    // What changed between the first look and the first watch.
    void this.#watch.ready.then(() => this.refresh());
  }

  /** Looks at the files now, whether they are watched or not. */
  async refresh(): Promise<void> {
    if (this.#isClosed || this.#options.launch.node === undefined) return;
    for (const [file, state] of this.#states) if (stateOf(file) !== state) this.#changed.add(file);
    await (this.#reloading ??= this.#reloadAll());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#watch?.close();
    await Promise.all([...this.#generations, ...this.#retired].map((generation) => generation.close()));
    await this.#reloading;
  }

  /** What changes while files are being read is read in the next round. */
  async #reloadAll(): Promise<void> {
    do {
      const changed = new Set(this.#changed);
      this.#changed.clear();
      try {
        await this.#reload(changed);
      } catch (error) {
        this.#options.logger.error("handlers could not be loaded again", { error });
      }
    } while (this.#changed.size > 0 && !this.#isClosed);
    this.#reloading = undefined;
  }

  async #reload(changed: ReadonlySet<string>): Promise<void> {
    const files = await findHandlerFiles(this.#options.paths);
    for (const file of this.#reported.keys()) if (!files.includes(file)) this.#reported.delete(file);
    const gone = [...this.#shelves.keys()].filter((file) => !files.includes(file));
    const affected = files.filter((file) => this.#isAffected(file, changed));
    if (affected.length === 0 && gone.length === 0) return;
    for (const file of gone) this.#forget(file);
    if (affected.length > 0) await this.#replaceCode(affected);
    this.#publish();
    if (affected.length > 0) this.#watchResources(this.#current);
  }

  #isAffected(file: string, changed: ReadonlySet<string>): boolean {
    if (changed.has(file)) return true;
    const shelf = this.#shelves.get(file);
    // A file that nobody knew, or that failed before: what it waits for may have come.
    if (shelf === undefined) return changed.size > 0 || !this.#states.has(file);
    for (const dependency of shelf.dependencies) if (changed.has(dependency)) return true;
    return false;
  }

  /** New processes with the new code. Files that are broken now stay with the processes that have their old code. */
  async #replaceCode(affected: readonly string[]): Promise<void> {
    const next = this.#newGeneration();
    const described = await this.#describe(affected, next);
    if (this.#isClosed) return;
    const kept = new Set<string>();
    for (const description of described) {
      const { file, problems } = description;
      const shelf = this.#shelves.get(file);
      if (shelf !== undefined && isWorse(description, shelf)) this.#keep(shelf, kept);
      else this.#shelve(description, next);
      const served = kept.has(file) ? undefined : this.#shelves.get(file);
      this.#report(file, served?.problems ?? problems, served !== undefined);
    }
    for (const [file, shelf] of this.#shelves) {
      if (kept.has(file) || this.#isPinned(file, affected)) continue;
      shelf.runBy(next.runnerFor(file));
      this.#generationOf.set(file, next);
    }
    this.#current = next;
    this.#retireUnused();
  }

  /** Broken since an earlier change: its code is not on disk any more. */
  #isPinned(file: string, affected: readonly string[]): boolean {
    return !affected.includes(file) && this.#reported.has(file) && this.#generationOf.get(file) !== this.#current;
  }

  /** Its processes have the old code, and whichever replaces one of them gets it too. */
  #keep({ file, sources }: FileShelf, kept: Set<string>): void {
    kept.add(file);
    this.#generationOf.get(file)?.keep(file, sources);
  }

  #retireUnused(): void {
    const used = new Set([this.#current, ...this.#generationOf.values()]);
    for (const generation of this.#generations) {
      if (used.has(generation)) continue;
      this.#generations.delete(generation);
      this.#retired.add(generation);
      generation.retire();
    }
    for (const generation of this.#retired) if (generation.isOver) this.#retired.delete(generation);
  }

  #forget(file: string): void {
    this.#shelves.delete(file);
    this.#generationOf.delete(file);
    this.#reported.delete(file);
    this.#states.delete(file);
  }

  #shelve(described: DescribedFile, generation: Generation): void {
    const { file } = described;
    if (described.isBroken) return;
    const runner = generation.runnerFor(file);
    const shelf = new FileShelf(described, runner, this.#shelves.get(file));
    shelf.runBy(runner);
    this.#shelves.set(file, shelf);
    this.#generationOf.set(file, generation);
  }

  async #describe(files: readonly string[], generation: Generation): Promise<readonly DescribedFile[]> {
    const { describeTypes } = this.#options;
    for (const file of files) this.#states.set(file, stateOf(file));
    const described = await describeFiles(files, { runnerFor: (file) => generation.runnerFor(file), describeTypes });
    const imported = new Set(described.flatMap(({ dependencies }) => dependencies));
    const news = [...imported].filter((file) => !this.#states.has(file));
    for (const file of news) this.#states.set(file, stateOf(file));
    if (news.length > 0) this.#watch?.add(news);
    return described;
  }

  /** Once for each problem: an editor saves a broken file many times. */
  #report(file: string, problems: FileShelf["problems"], isServed: boolean): void {
    const text = JSON.stringify(problems);
    if (problems.length === 0) {
      if (this.#reported.delete(file)) this.#options.logger.info("handler file works again", { file });
      return;
    }
    if (this.#reported.get(file) === text) return;
    this.#reported.set(file, text);
    // A problem of one function keeps only that from being served.
    const what = isServed ? "handler" : "handler file";
    for (const { file: at, line, column, message, fix } of problems) {
      this.#options.logger.error(`${what} cannot be used`, { file: at, line, column, reason: message, fix });
    }
  }

  #publish(): void {
    const { registry, changes, logger } = this.#options;
    const shelves = [...this.#shelves].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, shelf]) => shelf);
    const { changed, refused } = registry.replace(SOURCE, {
      tools: shelves.flatMap(({ tools }) => tools),
      resources: shelves.flatMap(({ resources }) => resources.map(({ definition }) => definition)),
      prompts: shelves.flatMap(({ prompts }) => prompts),
    });
    const clashes = nameClashes(refused, shelves);
    for (const clash of clashes) {
      if (!this.#clashes.has(JSON.stringify(clash))) logger.error("handler cannot be used", { ...clash });
    }
    this.#clashes = new Set(clashes.map((clash) => JSON.stringify(clash)));
    for (const list of changed) changes.listChanged(list);
  }

  /** One worker of each generation tells about changes; another takes over when it is gone. */
  #watchResources(generation: Generation): void {
    for (const [file, { resources, runner }] of this.#shelves) {
      if (this.#generationOf.get(file) !== generation) continue;
      for (const { definition, watch } of resources) {
        if (watch === undefined) continue;
        runner.run({ job: { op: "watch", remote: watch } }).catch((error: unknown) => {
          if (this.#isClosed || this.#generationOf.get(file) !== generation) return;
          this.#options.logger.error("resource cannot be watched", { uri: definition.uri, error });
        });
      }
    }
  }

  #newGeneration(): Generation {
    const { launch, cacheFolder, maxWorkers, maxLineChars, useSandbox, logger, changes } = this.#options;
    let leads = 0;
    const generation = new Generation({
      launch,
      cacheFolder,
      maxWorkers,
      maxLineChars,
      useSandbox,
      logger,
      onChanged: ({ target }: RemoteTarget) => {
        if (target.kind === "definition") changes.resourceUpdated(target.name);
      },
      onListChanged: (list) => {
        if (isList(list)) changes.listChanged(list);
      },
      onLead: (led) => {
        leads += 1;
        // The first is asked when everything is described.
        if (leads > 1) this.#watchResources(led);
      },
    });
    this.#generations.add(generation);
    return generation;
  }

  #watchedPaths(): readonly string[] {
    const dependencies = [...this.#shelves.values()].flatMap(({ dependencies: files }) => [...files]);
    return [...new Set([...this.#options.paths.filter((path) => !path.startsWith("!")), ...dependencies])];
  }
}

/** Has a problem that what is served does not have. */
function isWorse({ isBroken, problems }: DescribedFile, served: FileShelf): boolean {
  const known = new Set(served.problems.map(({ message }) => message));
  return isBroken || problems.some(({ message }) => !known.has(message));
}

function isList(list: string): list is ListKind {
  return list === "tools" || list === "resources" || list === "prompts";
}
