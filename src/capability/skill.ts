/** What makes a resource a skill, for the revisions whose clients know skills as such. The same object: nothing changed. */
export interface SkillFacts {
  /** Below the folder of all skills: `ecommerce`, `refund`. */
  readonly path: readonly string[];
  /** `…/SKILL.md`, under which those revisions list it. */
  readonly manifestUri: string;
  readonly category: string;
  readonly tags: readonly string[];
  /** Of all its files, below the skill's folder. */
  readonly names: readonly string[];
  /** Every file of the skill with its bytes, by its name. */
  files(): Promise<ReadonlyMap<string, Uint8Array>>;
  /** What stands directly in the skill's folder (no name) or in a folder below it; undefined when there is no such folder. */
  folder(name: string): readonly SkillEntry[] | undefined;
}

export interface SkillEntry {
  readonly uri: string;
  readonly name: string;
  /** `inode/directory` for a folder. */
  readonly mimeType: string;
  readonly sizeBytes?: number;
}

/** What tools say about their skills: a summary, or the whole text. */
export interface SkillTexts {
  /** Rises whenever an answer of `of` may have changed. */
  readonly version: number;
  of(uri: string): string | undefined;
}
