import * as z from "zod";
import { type SkillFilter, skillFilter } from "../capability/skill.ts";
import type { Skill } from "./load-skill.ts";
import type { HandlerDefinition } from "../capability/define.ts";
import type { SkillLibrary } from "./skill-library.ts";

const MAX_LIMIT = 50;

/** Bounds the result: fifty descriptions of full length would exceed it. */
const MAX_DESCRIPTION_CHARS = 300;

interface RankedSkill {
  readonly skill: Skill;
  readonly score: number;
}

/** The weight of a match by field. */
const WEIGHTS = { name: 8, tags: 6, category: 4, description: 2 } as const;

/** The skills that match all of the words, best first. An empty text matches all skills. */
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
      // A whole word counts more than a part of a word.
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

const input = z.strictObject({
  query: z
    .string()
    .max(500)
    .default("")
    .describe("Words to look for in names, tags, categories and descriptions. Empty: all skills."),
  category: z.string().max(500).optional().describe("Only this category and those below it, such as ecommerce."),
  tags: z.array(z.string().max(100)).max(20).optional().describe("Only skills that have all of these tags."),
  uri: z.string().max(1000).optional().describe("Only URIs that fit, such as skill://ecommerce/*."),
  limit: z.int().min(1).max(MAX_LIMIT).default(10).describe("Most skills to return."),
});

const output = z.object({
  skills: z.array(
    z.object({
      uri: z.string(),
      name: z.string(),
      category: z.string(),
      tags: z.array(z.string()),
      description: z.string(),
      score: z.number(),
    }),
  ),
  total: z.number(),
});

export function skillSearch(library: SkillLibrary): HandlerDefinition<typeof input, typeof output> {
  return {
    name: "skill_search",
    title: "Search skills",
    description:
      "Finds skills: instructions of this organisation for particular kinds of work. Returns URI, name, category, tags and description, best match first. Read a skill with resources/read on its URI before you do that kind of work. Changes nothing.",
    effect: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
    scope: "workspace",
    input,
    output,
    run: ({ query, category, tags, uri, limit }, { seesResource }) => {
      // Filtered before the count, so that the total does not reveal hidden skills.
      const found = searchSkills(library.skills.values(), query, { category, tags, uri }).filter(
        ({ skill }) => seesResource?.(skill.uri) ?? true,
      );
      const skills = found.slice(0, limit).map(({ skill, score }) => ({
        uri: skill.uri,
        name: skill.metadata.name,
        category: skill.category,
        tags: [...skill.metadata.tags],
        description: cut(skill.metadata.description),
        score,
      }));
      const value = { skills, total: found.length };
      const head = `skill_search ok: ${skills.length} of ${found.length} ${found.length === 1 ? "skill" : "skills"}`;
      return { content: [{ type: "text", text: `${head}\n${JSON.stringify(value)}` }], structuredContent: value };
    },
  };
}

function cut(text: string): string {
  const characters = Array.from(text);
  return characters.length <= MAX_DESCRIPTION_CHARS ? text : `${characters.slice(0, MAX_DESCRIPTION_CHARS).join("")}…`;
}
