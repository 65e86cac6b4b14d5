import { type SkillFilter, skillFilter } from "../capability/skill-filter.ts";
import type { Skill } from "./load-skill.ts";

export interface RankedSkill {
  readonly skill: Skill;
  readonly score: number;
}

/** What a word found in this place is worth. */
const WEIGHTS = { name: 8, tags: 6, category: 4, description: 2 } as const;

/** The skills that have to do with the words, best first. Every word must be found somewhere; no words find all. */
export function searchSkills(skills: Iterable<Skill>, words: string, filter: SkillFilter = {}): readonly RankedSkill[] {
  const isMeant = skillFilter(filter);
  const terms = [...new Set(termsOf(words))];
  const ranked: RankedSkill[] = [];
  for (const skill of skills) {
    if (!isMeant({ path: skill.path, category: skill.category, tags: skill.metadata.tags })) continue;
    const score = scoreOf(skill, terms);
    if (score !== undefined) ranked.push({ skill, score });
  }
  return ranked.sort((a, b) => b.score - a.score || (a.skill.uri < b.skill.uri ? -1 : 1));
}

interface Indexed {
  readonly fields: readonly { readonly words: ReadonlySet<string>; readonly text: string; readonly weight: number }[];
}

const indexes = new WeakMap<Skill, Indexed>();

function scoreOf(skill: Skill, terms: readonly string[]): number | undefined {
  const { fields } = indexOf(skill);
  let total = 0;
  for (const term of terms) {
    let best = 0;
    for (const { words, text, weight } of fields) {
      // A whole word says more than the same letters inside of another.
      if (words.has(term)) best += weight;
      else if (text.includes(term)) best += weight / 4;
    }
    if (best === 0) return undefined;
    total += best;
  }
  return total;
}

function indexOf(skill: Skill): Indexed {
  let index = indexes.get(skill);
  if (index === undefined) {
    const { name, title = "", tags, description } = skill.metadata;
    index = {
      fields: [
        field(`${name} ${title} ${skill.path.at(-1) ?? ""}`, WEIGHTS.name),
        field(tags.join(" "), WEIGHTS.tags),
        field(skill.category, WEIGHTS.category),
        field(description, WEIGHTS.description),
      ],
    };
    indexes.set(skill, index);
  }
  return index;
}

function field(text: string, weight: number): Indexed["fields"][number] {
  return { words: new Set(termsOf(text)), text: fold(text), weight };
}

function termsOf(text: string): readonly string[] {
  return fold(text).match(/[\p{L}\p{N}]+/gu) ?? [];
}

function fold(text: string): string {
  return text.normalize("NFKC").toLowerCase();
}
