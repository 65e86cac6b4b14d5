import type { SkillFacts } from "./skill.ts";
import { skillMatcher } from "./skill-uri.ts";

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
