import { type Skill, SkillCatalogError, skillEntry } from "@modelcontextprotocol/server/ext/skills";
import type { ResourceDefinition } from "../../capabilities/define.ts";
import type { SkillFacts } from "../../capabilities/skill.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { Caller } from "../../pipeline/caller.ts";
import type { Mcp } from "../mcp.ts";
import { paginate } from "../paginate.ts";

const PAGE_SIZE = 50;
/** Clients are told of changes; what they keep without asking would be old. */
const CACHE = { ttlMs: 0, cacheScope: "private" } as const;

/** `skills/list` of the skills extension: every skill with its frontmatter and the digests of its files. */
export async function listSkills(
  mcp: Mcp,
  cursor: string | undefined,
  caller: Caller,
): Promise<Record<string, unknown>> {
  const { items, nextCursor } = paginate(visibleSkills(mcp, caller), {
    list: "skills",
    size: PAGE_SIZE,
    cursor,
    keyOf: ({ uri }) => uri,
  });
  const entries = await Promise.all(items.map(({ skill }) => entryOf(mcp, skill)));
  const skills = entries.filter((entry) => entry !== undefined);
  return { skills, ...(nextCursor !== undefined && { nextCursor }), ...CACHE };
}

/** `skills/get`: one of them, by the URI of its SKILL.md. */
export async function getSkill(mcp: Mcp, uri: string, caller: Caller): Promise<Record<string, unknown>> {
  const facts = factsAt(mcp, uri, caller);
  const skill = facts?.manifestUri === uri ? await entryOf(mcp, facts) : undefined;
  if (skill === undefined) {
    throw new OwlError("invalid_params", `there is no skill at "${uri.slice(0, 256)}"`, {
      facts: { uri: uri.slice(0, 256) },
      hint: "name the skill by its SKILL.md, as skills/list does",
    });
  }
  return { skill, ...CACHE };
}

export interface DirectoryParams {
  readonly uri: string;
  readonly cursor?: string | undefined;
}

/** `resources/directory/read`: what stands directly in a folder of a skill. */
export function readDirectory(mcp: Mcp, { uri, cursor }: DirectoryParams, caller: Caller): Record<string, unknown> {
  const entries = folderAt(mcp, uri, caller);
  if (entries === undefined) {
    throw new OwlError("invalid_params", `"${uri.slice(0, 256)}" is no folder of a skill`, {
      facts: { uri: uri.slice(0, 256) },
      hint: "name a skill's folder, as skill://category/name, or a folder below it",
    });
  }
  const page = paginate(entries, { list: `directory ${uri}`, size: PAGE_SIZE, cursor, keyOf: (entry) => entry.uri });
  const resources = page.items.map(({ sizeBytes, ...entry }) => ({
    ...entry,
    ...(sizeBytes !== undefined && { size: sizeBytes }),
  }));
  return { resources, ...(page.nextCursor !== undefined && { nextCursor: page.nextCursor }), ...CACHE };
}

type SkillDefinition = ResourceDefinition & { readonly skill: SkillFacts };

function visibleSkills({ pipeline }: Mcp, caller: Caller): readonly SkillDefinition[] {
  return pipeline
    .visibleResources(caller)
    .map(({ definition }) => definition)
    .filter((definition) => isSkill(definition));
}

function isSkill(definition: ResourceDefinition): definition is SkillDefinition {
  return definition.skill !== undefined;
}

/** The skill that a URI belongs to, if this caller may know of it. */
function factsAt({ pipeline }: Mcp, uri: string, caller: Caller): SkillFacts | undefined {
  const resource = pipeline.registry.findResource(uri)?.resource;
  return resource !== undefined && pipeline.visibleResources(caller).includes(resource)
    ? resource.definition.skill
    : undefined;
}

function folderAt(mcp: Mcp, uri: string, caller: Caller) {
  // The folder itself is no resource, but the SKILL.md in it, or above it, is.
  for (let end = uri.length; end > "skill://".length; end = uri.lastIndexOf("/", end - 1)) {
    const facts = factsAt(mcp, `${uri.slice(0, end)}/SKILL.md`, caller);
    if (facts !== undefined) return facts.folder(decodeURIComponent(uri.slice(end + 1)));
  }
  return undefined;
}

const entries = new WeakMap<SkillFacts, Promise<Skill | undefined>>();

/** Built by the SDK, so that it says of a skill what the SDK's clients check. Kept until the skill changes. */
function entryOf(mcp: Mcp, facts: SkillFacts): Promise<Skill | undefined> {
  let entry = entries.get(facts);
  if (entry === undefined) {
    entry = buildEntry(mcp, facts);
    entries.set(facts, entry);
    // A file that could not be read just now may be readable later.
    entry.catch(() => entries.delete(facts));
  }
  return entry;
}

/** Undefined for a skill that is served as a resource but keeps not to the standard's rules. */
async function buildEntry({ logger }: Mcp, facts: SkillFacts): Promise<Skill | undefined> {
  try {
    return await skillEntry(facts.path.join("/"), Object.fromEntries(await facts.files()));
  } catch (error) {
    if (!(error instanceof SkillCatalogError)) throw error;
    const reason = error.problems.map(({ message }) => message).join("; ");
    logger.info("skill is left out of skills/list", { skill: facts.manifestUri, reason });
    return undefined;
  }
}
