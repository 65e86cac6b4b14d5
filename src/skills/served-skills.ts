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
import type { SkillTexts } from "../capability/skill.ts";

const SOURCE = "skills";
const MAX_LOGGED_PROBLEMS = 20;

export interface ServeSkillsOptions {
  readonly config: Config["skills"];
  readonly registry: Registry;
  readonly changes: Changes;
  readonly logger: Logger;
}

export interface ServedSkills {
  /** Text for the description of a tool that is linked to the skill; undefined when there is no such skill. */
  describe(uri: string, options: { readonly inline: boolean }): Promise<string | undefined>;
  /** Errors and warnings for the skills' authors. */
  readonly problems: readonly SkillProblem[];
  /** Calls back when the text of a skill may have changed. */
  onChange(listener: () => void): void;
  /** Starts watching the disk. */
  start(): void;
  /** Scans the disk now. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

/** Reads the skills, adds them to the registry, and updates the registry when they change. */
export async function serveSkills(options: ServeSkillsOptions): Promise<ServedSkills> {
  const { config, logger } = options;
  const library = new SkillLibrary(config.dir);
  const registration = new SkillRegistration(library, options);
  await library.refresh();
  registration.register();
  const watcher = new SkillWatcher({
    library,
    config,
    logger,
    onChange: (updated) => registration.publish(updated),
    onSame: () => registration.logProblems(),
  });
  return {
    describe: (uri, { inline }) => describeSkill(library, uri, { inline }),
    get problems() {
      return library.problems;
    },
    onChange: (listener) => registration.listeners.push(listener),
    start: () => watcher.start(),
    refresh: () => watcher.refresh(),
    close: () => watcher.close(),
  };
}

/** Adds the skills to the registry and reports their changes and problems. */
class SkillRegistration {
  readonly listeners: (() => void)[] = [];
  readonly #options: ServeSkillsOptions;
  readonly #library: SkillLibrary;
  readonly #definitions = new WeakMap<Skill, ResourceDefinition>();
  readonly #template: ResourceDefinition;
  readonly #tool;
  #logged: ReadonlySet<string> = new Set();

  constructor(library: SkillLibrary, options: ServeSkillsOptions) {
    this.#options = options;
    this.#library = library;
    this.#template = skillTemplate(library, (skill) => this.#definitionOf(skill));
    this.#tool = compileTool(skillSearch(library));
  }

  register(): boolean {
    const { registry, logger } = this.#options;
    const { skills } = this.#library;
    const resources = [...skills.values()].map((skill) => this.#definitionOf(skill));
    const { changed, refused } = registry.replace(SOURCE, {
      tools: [this.#tool],
      resources: [...resources, this.#template],
    });
    for (const { name } of refused) logger.error("skill cannot be served: its name is another's", { name });
    this.logProblems();
    return changed.includes("resources");
  }

  /** Updates the registry before clients are notified. */
  publish(updated: readonly string[]): void {
    const { changes } = this.#options;
    const isListChanged = this.register();
    for (const listener of this.listeners) listener();
    for (const uri of updated) changes.resourceUpdated(uri);
    if (isListChanged) changes.listChanged("resources");
  }

  /** Logs each problem once until it is fixed. */
  logProblems(): void {
    const { logger } = this.#options;
    const problems = new Map(this.#library.problems.map((problem) => [describeProblem(problem), problem]));
    const added = [...problems].filter(([line]) => !this.#logged.has(line)).map(([, problem]) => problem);
    for (const { path, line, severity, message, fix } of added.slice(0, MAX_LOGGED_PROBLEMS)) {
      const facts = { file: join(this.#library.root, path), line, reason: message, fix };
      if (severity === "error") logger.error("skill cannot be used", facts);
      else logger.warning("skill should be corrected", facts);
    }
    if (added.length > MAX_LOGGED_PROBLEMS)
      logger.warning("skills have more problems: owlclaw mcp-server skills validate lists them", {
        count: added.length,
      });
    this.#logged = new Set(problems.keys());
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

interface SkillWatcherOptions {
  readonly library: SkillLibrary;
  readonly config: Config["skills"];
  readonly logger: Logger;
  readonly onChange: (updated: readonly string[]) => void;
  /** The served skills did not change, but there may be new problems. */
  readonly onSame: () => void;
}

/** Scans the disk after changes and at the end of the cache's TTL. */
class SkillWatcher {
  readonly #options: SkillWatcherOptions;
  #watch: FileWatch | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: SkillWatcherOptions) {
    this.#options = options;
  }

  start(): void {
    const { library, config, logger } = this.#options;
    this.#timer = setInterval(() => void this.refresh(), config.cacheTtlSeconds * 1000);
    this.#timer.unref();
    if (!config.watch) return;
    const onError = (error: Error): void =>
      logger.warning("skills cannot be watched; changes are seen after skills.cacheTtlSeconds", { error });
    this.#watch = watchFiles({ paths: [library.root], onError }, (files) => void this.refresh(files));
    // Changes between the first scan and the start of the watch.
    void this.#watch.ready.then(() => this.refresh());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#watch?.close();
  }

  async refresh(files?: ReadonlySet<string>): Promise<void> {
    if (this.#isClosed) return;
    const { library, logger, onChange, onSame } = this.#options;
    try {
      const { isChanged, updated } = await library.refresh(files);
      if (this.#isClosed) return;
      if (isChanged) onChange(updated);
      else onSame();
    } catch (error) {
      logger.error("skills cannot be scanned", { error });
    }
  }
}

export interface LinkedSkillsOptions {
  readonly registry: Registry;
  readonly changes: Changes;
  readonly skills: ServedSkills;
  /** The whole text instead of a summary. */
  readonly inline: boolean;
  readonly logger: Logger;
}

/** The texts of linked skills in tool descriptions, cached since every `tools/list` needs them. */
export class LinkedSkills implements SkillTexts {
  readonly #options: LinkedSkillsOptions;
  #texts: ReadonlyMap<string, string> = new Map();
  #missing: ReadonlySet<string> = new Set();
  #version = 0;

  constructor(options: LinkedSkillsOptions) {
    this.#options = options;
    const { changes, skills, logger } = options;
    const follow = (): void => {
      this.refresh().then(
        (isChanged) => void (isChanged && changes.listChanged("tools")),
        (error: unknown) => logger.warning("skills of tools could not be read", { error }),
      );
    };
    skills.onChange(follow);
    changes.subscribe((change) => {
      if (change.kind === "list" && change.list === "tools") follow();
    });
  }

  get version(): number {
    return this.#version;
  }

  of(uri: string): string | undefined {
    return this.#texts.get(uri);
  }

  async refresh(): Promise<boolean> {
    const { registry, skills, inline } = this.#options;
    const uris = new Set(registry.tools().flatMap(({ skill }) => (skill === undefined ? [] : [skill])));
    const texts = new Map<string, string>();
    for (const uri of uris) {
      const text = await skills.describe(uri, { inline });
      if (text !== undefined) texts.set(uri, text);
    }
    this.#tellMissing([...uris].filter((uri) => !texts.has(uri)));
    const isSame = texts.size === this.#texts.size && [...texts].every(([uri, text]) => this.#texts.get(uri) === text);
    if (isSame) return false;
    this.#texts = texts;
    this.#version += 1;
    return true;
  }

  /** Logs each missing skill once until it exists. */
  #tellMissing(uris: readonly string[]): void {
    const { registry, logger } = this.#options;
    for (const skill of uris.filter((uri) => !this.#missing.has(uri))) {
      const tools = registry.tools().filter((tool) => tool.skill === skill);
      const fix = "correct the name that the handler gives, or add the skill below skills.dir";
      logger.warning("tools name a skill that is not there", { skill, tools: tools.map(({ name }) => name), fix });
    }
    this.#missing = new Set(uris);
  }
}
