import type { Changes, Registry } from "../capability/registry.ts";
import type { SkillTexts } from "../capability/skill.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { ServedSkills } from "./served-skills.ts";

export interface LinkedSkillsOptions {
  readonly registry: Registry;
  readonly changes: Changes;
  readonly skills: ServedSkills;
  /** The whole text in place of a summary. */
  readonly inline: boolean;
  readonly logger: Logger;
}

/** What tools say about the skills they are linked to, kept at hand since every list needs it. */
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

  /** Each once, until it is there. */
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
