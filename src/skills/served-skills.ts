import { join } from "node:path";
import type { Changes, Registry } from "../capability/registry.ts";
import type { ResourceDefinition } from "../capability/define.ts";
import { compileTool } from "../capability/define-tool.ts";
import type { Config } from "../config/schema.ts";
import type { Skill } from "./load-skill.ts";
import { SkillLibrary } from "./skill-library.ts";
import { describeProblem, type SkillProblem } from "./scan-skills.ts";
import { describeSkill, skillTemplate, toResourceDefinition } from "./skill-resource.ts";
import { skillSearch } from "./skill-search.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type FileWatch, watchFiles } from "../platform/watch-files.ts";

const SOURCE = "skills";
const MAX_LOGGED_PROBLEMS = 20;

export interface ServeSkillsOptions {
  readonly config: Config["skills"];
  readonly registry: Registry;
  readonly changes: Changes;
  readonly logger: Logger;
}

export interface ServedSkills {
  /** What a tool that is linked to a skill says about it; undefined when there is no such skill. */
  describe(uri: string, options: { readonly inline: boolean }): Promise<string | undefined>;
  /** What their authors should change. */
  readonly problems: readonly SkillProblem[];
  /** Calls back whenever a skill may say something else than before. */
  onChange(listener: () => void): void;
  /** Follows the disk from now on. */
  start(): void;
  /** Looks at the disk now. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

/** Reads the skills, puts them into the registry and keeps them there as the disk has them. */
export async function serveSkills(options: ServeSkillsOptions): Promise<ServedSkills> {
  const { config, logger } = options;
  const library = new SkillLibrary(config.dir);
  const shelf = new SkillShelf(library, options);
  await library.refresh();
  shelf.put();
  const follower = new Follower({
    library,
    config,
    logger,
    onChange: (updated) => shelf.renew(updated),
    onSame: () => shelf.tellProblems(),
  });
  return {
    describe: (uri, { inline }) => describeSkill(library, uri, { inline }),
    get problems() {
      return library.problems;
    },
    onChange: (listener) => shelf.listeners.push(listener),
    start: () => follower.start(),
    refresh: () => follower.look(),
    close: () => follower.close(),
  };
}

/** The skills' place in the registry. */
class SkillShelf {
  readonly listeners: (() => void)[] = [];
  readonly #options: ServeSkillsOptions;
  readonly #library: SkillLibrary;
  readonly #definitions = new WeakMap<Skill, ResourceDefinition>();
  readonly #template: ResourceDefinition;
  readonly #tool;
  #told: ReadonlySet<string> = new Set();

  constructor(library: SkillLibrary, options: ServeSkillsOptions) {
    this.#options = options;
    this.#library = library;
    this.#template = skillTemplate(library, (skill) => this.#definitionOf(skill));
    this.#tool = compileTool(skillSearch(library));
  }

  put(): boolean {
    const { registry, logger } = this.#options;
    const { skills } = this.#library;
    const resources = [...skills.values()].map((skill) => this.#definitionOf(skill));
    const { changed, refused } = registry.replace(SOURCE, {
      tools: [this.#tool],
      resources: [...resources, this.#template],
    });
    for (const { name } of refused) logger.error("skill cannot be served: its name is another's", { name });
    this.tellProblems();
    return changed.includes("resources");
  }

  /** Readers see the new state before they are told of it. */
  renew(updated: readonly string[]): void {
    const { changes } = this.#options;
    const isListChanged = this.put();
    for (const listener of this.listeners) listener();
    for (const uri of updated) changes.resourceUpdated(uri);
    if (isListChanged) changes.listChanged("resources");
  }

  /** Each problem once, until it is gone. */
  tellProblems(): void {
    const { logger } = this.#options;
    const problems = new Map(this.#library.problems.map((problem) => [describeProblem(problem), problem]));
    const news = [...problems].filter(([line]) => !this.#told.has(line)).map(([, problem]) => problem);
    for (const { path, line, severity, message, fix } of news.slice(0, MAX_LOGGED_PROBLEMS)) {
      const facts = { file: join(this.#library.root, path), line, reason: message, fix };
      if (severity === "error") logger.error("skill cannot be used", facts);
      else logger.warning("skill should be corrected", facts);
    }
    if (news.length > MAX_LOGGED_PROBLEMS)
      logger.warning("skills have more problems: owlclaw mcp-server skills validate lists them", {
        count: news.length,
      });
    this.#told = new Set(problems.keys());
  }

  #definitionOf(skill: Skill): ResourceDefinition {
    let definition = this.#definitions.get(skill);
    if (definition === undefined) {
      definition = toResourceDefinition(this.#library, skill);
      this.#definitions.set(skill, definition);
    }
    return definition;
  }
}

interface FollowerOptions {
  readonly library: SkillLibrary;
  readonly config: Config["skills"];
  readonly logger: Logger;
  readonly onChange: (updated: readonly string[]) => void;
  /** What is served is what it was; what is on the disk may have got worse. */
  readonly onSame: () => void;
}

/** Looks at the disk when something changed there, and when what is known has become old. */
class Follower {
  readonly #options: FollowerOptions;
  #watch: FileWatch | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: FollowerOptions) {
    this.#options = options;
  }

  start(): void {
    const { library, config, logger } = this.#options;
    this.#timer = setInterval(() => void this.look(), config.cacheTtlSeconds * 1000);
    this.#timer.unref();
    if (!config.watch) return;
    const onError = (error: Error): void =>
      logger.warning("skills cannot be watched; changes are seen after skills.cacheTtlSeconds", { error });
    this.#watch = watchFiles({ paths: [library.root], onError }, (files) => void this.look(files));
    // What changed between the first look and the first watch.
    void this.#watch.ready.then(() => this.look());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#watch?.close();
  }

  async look(files?: ReadonlySet<string>): Promise<void> {
    if (this.#isClosed) return;
    const { library, logger, onChange, onSame } = this.#options;
    try {
      const { isChanged, updated } = await library.refresh(files);
      if (this.#isClosed) return;
      if (isChanged) onChange(updated);
      else onSame();
    } catch (error) {
      logger.error("skills cannot be looked at", { error });
    }
  }
}
