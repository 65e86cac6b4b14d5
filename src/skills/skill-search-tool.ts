import * as z from "zod";
import type { HandlerDefinition } from "../capability/define.ts";
import type { SkillLibrary } from "./skill-library.ts";
import { searchSkills } from "./skill-search.ts";

const MAX_LIMIT = 50;
/** Fifty descriptions of the longest kind would fill a result with one answer. */
const MAX_DESCRIPTION_CHARS = 300;

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
      // Before the count: that there is something hidden is nobody's business.
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
