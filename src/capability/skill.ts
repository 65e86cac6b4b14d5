import { skillMatcher } from "./skill-uri.ts";

/** Marks a resource as a skill, for revisions with the skills extension. The object is replaced when the skill changes. */
export interface SkillFacts {
  /** Relative to `skills.dir`: `ecommerce`, `refund`. */
  readonly path: readonly string[];
  /** `…/SKILL.md`: the URI under which those revisions list the skill. */
  readonly manifestUri: string;
  readonly category: string;
  readonly tags: readonly string[];
  /** Paths of all its files, relative to the skill's folder. */
  readonly names: readonly string[];
  /** The bytes of every file, by its name. */
  files(): Promise<ReadonlyMap<string, Uint8Array>>;
  /** The entries of the skill's folder (empty name) or of a folder below it; undefined when there is no such folder. */
  folder(name: string): readonly SkillEntry[] | undefined;
}

export interface SkillEntry {
  readonly uri: string;
  readonly name: string;
  /** `inode/directory` for a folder. */
  readonly mimeType: string;
  readonly sizeBytes?: number;
}

export interface SkillFilter {
  /** Includes the categories below it. */
  readonly category?: string | undefined;
  /** The skill must have all of them. */
  readonly tags?: readonly string[] | undefined;
  /** `skill://ecommerce/*`. */
  readonly uri?: string | undefined;
}

/** @throws OwlError when `uri` is not a pattern of skill URIs. */
export function skillFilter({
  category,
  tags = [],
  uri,
}: SkillFilter): (skill: Pick<SkillFacts, "path" | "category" | "tags">) => boolean {
  const fits = uri === undefined ? () => true : skillMatcher(uri);
  const wanted = tags.map(fold);
  return (skill) => {
    if (category !== undefined && skill.category !== category && !skill.category.startsWith(`${category}/`))
      return false;
    const own = skill.tags.map(fold);
    return wanted.every((tag) => own.includes(tag)) && fits(skill.path);
  };
}

function fold(text: string): string {
  return text.normalize("NFKC").toLowerCase();
}

/** What tools say about their skills: a summary, or the whole text. */
export interface SkillTexts {
  /** Increases when a result of `of` may have changed. */
  readonly version: number;
  of(uri: string): string | undefined;
}
