import type { ListKind, Registry, Changes } from "../capability/registry.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type FileWatch, watchFiles } from "../platform/watch-files.ts";
import { type DescribedFile, describeFiles, type DescribeOptions, importReport } from "./describe-file.ts";
import { type Runner, ServedFile } from "./served-file.ts";
import { findHandlerFiles, FileStates } from "./handler-files.ts";
import { FirstLoads } from "./first-loads.ts";
import { Generation, type GenerationOptions } from "./generation.ts";
import type { HandlerProblem } from "./handler-description.ts";
import { ProblemReports, nameClashes } from "./problem-reports.ts";
import type { ReportCache } from "./report-cache.ts";
import type { RemoteTarget } from "./workers/remote-call.ts";

/** The source of handlers in the registry. */
export const HANDLER_SOURCE = "handlers";

interface HandlerLibraryOptions extends Pick<
  GenerationOptions,
  "launch" | "cacheFolder" | "maxWorkers" | "isPerClient" | "maxLineChars" | "useSandbox"
> {
  readonly registry: Registry;
  readonly changes: Changes;
  readonly logger: Logger;
  /** Files, folders or globs, absolute. */
  readonly paths: readonly string[];
  readonly describeTypes: DescribeOptions["describeTypes"];
  readonly cache?: ReportCache | undefined;
  readonly environment: DescribeOptions["environment"];
  readonly refuse?: DescribeOptions["refuse"];
}

/** The operator's handler files: loads, serves, watches and reloads them. */
export class HandlerLibrary {
  readonly #options: HandlerLibraryOptions;
  readonly #served = new Map<string, ServedFile>();
  readonly #generationOf = new Map<string, Generation>();
  readonly #problems: ProblemReports;
  readonly #firstLoads: FirstLoads;
  readonly #generations = new Set<Generation>();
  readonly #retired = new Set<Generation>();
  #current: Generation;
  #watch: FileWatch | undefined;
  readonly #states = new FileStates();
  readonly #changed = new Set<string>();
  readonly #listeners = new Set<(files: readonly string[]) => void>();
  #reloading: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: HandlerLibraryOptions) {
    this.#options = options;
    this.#problems = new ProblemReports(options.logger);
    this.#firstLoads = new FirstLoads({
      load: (file) => importReport(file, this.#runnerOf(file)),
      hasChanged: (file) => this.#hasChanged(file),
      onDifferent: (file) => this.#describeAgain(file),
    });
    this.#current = this.#newGeneration();
  }

  /** Called with the files that were reloaded or removed. */
  onChanged(listener: (files: readonly string[]) => void): void {
    this.#listeners.add(listener);
  }

  /** Why handlers are not served. */
  get problems(): readonly HandlerProblem[] {
    return this.#problems.all;
  }

  /**
   * Finds and registers all handlers. A file that fails is reported and does not affect others. An unchanged file with a
   * cached report is not loaded here: `loadRest`, or its first call, loads it.
   */
  async load({ mayUseCache = true }: { readonly mayUseCache?: boolean } = {}): Promise<void> {
    const { paths } = this.#options;
    const files = await findHandlerFiles(paths);
    await this.#reportEmpty(paths);
    for (const described of await this.#describe(files, this.#current, mayUseCache)) {
      this.#settle(described, this.#current);
    }
    this.#publish();
    this.#watchResources(this.#current);
  }

  /** Loads the files that no call has loaded yet. */
  loadRest(): void {
    this.#firstLoads.start();
  }

  async #reportEmpty(paths: readonly string[]): Promise<void> {
    for (const path of paths.filter((each) => !each.startsWith("!"))) {
      const found = await findHandlerFiles([path]);
      if (found.length > 0) continue;
      const fix = "correct handlers.paths: a file, a folder or a glob";
      this.#problems.report(path, { problems: [{ file: path, message: "no file matches", fix }], isServed: false });
    }
  }

  /** Watches the files from now on. */
  watch(): void {
    if (this.#watch !== undefined || this.#options.launch.node === undefined) return;
    this.#watch = watchFiles({ paths: this.#watchedPaths() }, (files) => {
      for (const file of files) this.#changed.add(file);
      this.#reloading ??= this.#reloadAll();
    });
    // Changes between the load and the start of the watch.
    void this.#watch.ready.then(() => this.refresh());
  }

  /** Checks the files now, also when they are not watched. */
  async refresh(): Promise<void> {
    if (this.#isClosed || this.#options.launch.node === undefined) return;
    for (const file of this.#states.changed()) this.#changed.add(file);
    await (this.#reloading ??= this.#reloadAll());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#watch?.close();
    const generations = [...this.#generations, ...this.#retired].map((generation) => generation.close());
    await Promise.all([this.#firstLoads.close(), ...generations]);
    await this.#reloading;
  }

  /** Changes during a reload are handled in the next round. */
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
    this.#problems.keepOnly(files);
    const gone = [...this.#served.keys()].filter((file) => !files.includes(file));
    const affected = files.filter((file) => this.#isAffected(file, changed));
    if (affected.length === 0 && gone.length === 0) return;
    for (const file of gone) this.#forget(file);
    if (affected.length > 0) await this.#replaceCode(affected);
    this.#publish();
    for (const listener of this.#listeners) listener([...affected, ...gone]);
    if (affected.length > 0) this.#watchResources(this.#current);
  }

  #isAffected(file: string, changed: ReadonlySet<string>): boolean {
    if (changed.has(file)) return true;
    const served = this.#served.get(file);
    // A new file, or one that failed before: the change may fix it.
    if (served === undefined) return changed.size > 0 || !this.#states.has(file);
    for (const dependency of served.dependencies) if (changed.has(dependency)) return true;
    return false;
  }

  /** Starts processes with the new code. Files that are broken now stay with the processes that have their old code. */
  async #replaceCode(affected: readonly string[]): Promise<void> {
    const next = this.#newGeneration();
    const described = await this.#describe(affected, next);
    if (this.#isClosed) return;
    const kept = new Set<string>();
    for (const description of described) {
      const { file, problems } = description;
      const served = this.#served.get(file);
      if (served === undefined || !served.isBetterThan(description)) this.#settle(description, next);
      else {
        this.#keep(served, kept);
        this.#problems.report(file, { problems, isServed: false });
      }
    }
    for (const [file, served] of this.#served) {
      if (kept.has(file) || this.#isPinned(file, affected)) continue;
      served.runBy(next.runnerFor(file));
      this.#generationOf.set(file, next);
    }
    this.#current = next;
    this.#retireUnused();
  }

  /** Broken since an earlier change: only its old processes have its code. */
  #isPinned(file: string, affected: readonly string[]): boolean {
    return !affected.includes(file) && this.#problems.has(file) && this.#generationOf.get(file) !== this.#current;
  }

  /** Its processes have the old code; processes that replace them get it too. */
  #keep({ file, sources }: ServedFile, kept: Set<string>): void {
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
    this.#served.delete(file);
    this.#generationOf.delete(file);
    this.#problems.forget(file);
    this.#firstLoads.forget(file);
    this.#states.forget(file);
  }

  /** Serves the file's handlers, or reports why not. */
  #settle(described: DescribedFile, generation: Generation): void {
    const { file, isBroken, problems, kept } = described;
    if (!isBroken) {
      const runner = generation.runnerFor(file);
      const served = new ServedFile(described, runner, this.#served.get(file));
      this.#served.set(file, served);
      this.#generationOf.set(file, generation);
      if (kept !== undefined) this.#firstLoads.add(file, kept);
      served.runBy(kept === undefined ? runner : this.#firstLoads.runner(file, runner));
    }
    const served = isBroken ? undefined : this.#served.get(file);
    this.#problems.report(file, { problems: served?.problems ?? problems, isServed: served !== undefined });
  }

  #runnerOf(file: string): Runner {
    return (this.#generationOf.get(file) ?? this.#current).runnerFor(file);
  }

  #hasChanged(file: string): boolean {
    const files = [file, ...(this.#served.get(file)?.dependencies ?? [])];
    return this.#isClosed || files.some((path) => this.#states.hasChanged(path));
  }

  /** The cached report is outdated: describes the file as at a start without a cache. */
  async #describeAgain(file: string): Promise<void> {
    await this.#reloading;
    const generation = this.#generationOf.get(file);
    if (generation === undefined || this.#hasChanged(file)) return;
    for (const described of await this.#describe([file], generation)) {
      if (this.#isClosed || this.#generationOf.get(file) !== generation) return;
      if (described.isBroken) {
        this.#served.delete(file);
        this.#generationOf.delete(file);
      }
      this.#settle(described, generation);
    }
    this.#publish();
  }

  async #describe(
    files: readonly string[],
    generation: Generation,
    mayUseCache = false,
  ): Promise<readonly DescribedFile[]> {
    const { describeTypes, cache, environment, refuse } = this.#options;
    this.#states.note(files);
    const runnerFor = (file: string): Runner => generation.runnerFor(file);
    const described = await describeFiles(files, { runnerFor, describeTypes, cache, mayUseCache, environment, refuse });
    for (const { file, kept } of described) if (kept === undefined) this.#firstLoads.forget(file);
    const news = described.flatMap(({ dependencies }) => dependencies).filter((file) => !this.#states.has(file));
    this.#states.note(news);
    if (news.length > 0) this.#watch?.add([...new Set(news)]);
    return described;
  }

  #publish(): void {
    const { registry, changes } = this.#options;
    const servedFiles = [...this.#served].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, served]) => served);
    const { changed, refused } = registry.replace(HANDLER_SOURCE, {
      tools: servedFiles.flatMap(({ tools }) => tools),
      resources: servedFiles.flatMap(({ resources }) => resources.map(({ definition }) => definition)),
      prompts: servedFiles.flatMap(({ prompts }) => prompts),
    });
    this.#problems.reportClashes(nameClashes(refused, servedFiles));
    for (const list of changed) changes.listChanged(list);
  }

  /** One worker of each generation watches; another takes over when it ends. */
  #watchResources(generation: Generation): void {
    for (const [file, { resources, runner }] of this.#served) {
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
    const { changes } = this.#options;
    let leads = 0;
    const generation = new Generation({
      ...this.#options,
      sourcesOf: (file) => this.#served.get(file)?.sources,
      onChanged: ({ target }: RemoteTarget) => {
        if (target.kind === "definition") changes.resourceUpdated(target.name);
      },
      onListChanged: (list) => {
        if (isList(list)) changes.listChanged(list);
      },
      onLead: (led) => {
        leads += 1;
        // The first worker is asked after all files are described.
        if (leads > 1) this.#watchResources(led);
      },
    });
    this.#generations.add(generation);
    return generation;
  }

  #watchedPaths(): readonly string[] {
    const dependencies = [...this.#served.values()].flatMap(({ dependencies: files }) => [...files]);
    return [...new Set([...this.#options.paths.filter((path) => !path.startsWith("!")), ...dependencies])];
  }
}

function isList(list: string): list is ListKind {
  return list === "tools" || list === "resources" || list === "prompts";
}
