import { skillMatcher } from "./skill-uri.ts";

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

export interface SkillFilter {
  /** `ecommerce` means what is in it and in the categories below it. */
  readonly category?: string | undefined;
  /** All of them must be there. */
  readonly tags?: readonly string[] | undefined;
  /** `skill://ecommerce/*`. */
  readonly uri?: string | undefined;
}

/** A test for skills. Throws on a pattern that is no URI of skills. */
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
