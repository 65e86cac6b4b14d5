import type { Resource } from "../capability/registry.ts";
import type { SkillFacts } from "../capability/skill.ts";
import {
  formatSkillUri,
  isSkillUri,
  MANIFEST,
  MAX_SKILL_DEPTH,
  parseSkillUri,
  spellSkillUri,
} from "../capability/skill-uri.ts";
import { SPELLINGS } from "../capability/uri-pattern.ts";
import type { Subject } from "../governance/subject.ts";

export type ResourceNames = Pick<Subject, "name" | "names" | "spellings" | "calledAs">;

/**
 * The names that the policy uses for what is at a URI. Callers can write one URI in many ways (escaped or not, with a
 * query or without, by way of `..`) and get the same: so it has one name, and a rule on any spelling refuses them all.
 */
export function namesAt(uri: string, { definition, pattern }: Resource): ResourceNames {
  if (definition.skill !== undefined) return skillNames(uri, definition.skill);
  const variables = uri === definition.uri ? undefined : pattern?.match(uri);
  if (pattern === undefined || variables === undefined) return { name: uri, names: unique([uri, definition.uri]) };
  const values = definition.normalize?.(variables) ?? variables;
  const written = SPELLINGS.map((spell) => pattern.write(values, spell)).filter((each) => each !== undefined);
  const [name = uri] = written;
  const query = pattern.query(values);
  const names = unique([...written.map((each) => each + query), definition.uri]);
  return { name, names, spellings: unique([uri, ...written]), calledAs: uri };
}

/** A skill and its SKILL.md have the same name. Each other file has its name, and that of the skill as well. */
function skillNames(uri: string, { path, manifestUri }: SkillFacts): ResourceNames {
  const asked = parseSkillUri(uri);
  const manifest = [...path, MANIFEST];
  const own = spellSkillUri(path);
  const isSkill = asked.length === path.length || formatSkillUri(asked) === manifestUri;
  const ofFile = spellSkillUri(isSkill ? manifest : asked);
  const [name = uri] = isSkill ? own : ofFile;
  return { name, names: unique([...ofFile, ...own]), spellings: [uri], calledAs: uri };
}

/** The same for what does not exist, so that it is refused just as if it did. */
export function namesOfNothing(uri: string): ResourceNames {
  const path = isSkillUri(uri) ? pathOf(uri) : undefined;
  if (path === undefined) return { name: uri, names: [uri] };
  const around = path.slice(0, MAX_SKILL_DEPTH).map((_segment, index) => path.slice(0, index + 1));
  const spellings = [...around, [...path, MANIFEST]].flatMap(spellSkillUri);
  return {
    name: formatSkillUri(path),
    names: unique(spellSkillUri(path)),
    spellings: [uri, ...spellings],
    calledAs: uri,
  };
}

function pathOf(uri: string): readonly string[] | undefined {
  try {
    return parseSkillUri(uri);
  } catch {
    // A text that is not the URI of a skill has no other spelling.
    return undefined;
  }
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}
