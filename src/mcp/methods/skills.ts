import { type Skill, SkillCatalogError, skillEntry } from "@modelcontextprotocol/server/ext/skills";
import type { ResourceDefinition } from "../../capability/define.ts";
import type { Resource } from "../../capability/registry.ts";
import type { SkillFacts } from "../../capability/skill.ts";
import { formatSkillUri } from "../../capability/skill-uri.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { Caller } from "../../call/call.ts";
import { silentConversation } from "../conversations/silent.ts";
import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { paginate } from "../paginate.ts";
import { quotaMeta } from "../request-envelope.ts";

const PAGE_SIZE = 50;
/** Clients get notifications of changes; a cached copy could be outdated. */
const CACHE = { ttlMs: 0, cacheScope: "private" } as const;

/** `skills/list` of the skills extension: every skill with its frontmatter and the digests of its files. */
export async function listSkills(
  mcp: Mcp,
  cursor: string | undefined,
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  const { items, nextCursor } = paginate(visibleSkills(mcp, exchange.caller), {
    list: "skills",
    size: PAGE_SIZE,
    cursor,
    keyOf: ({ uri }) => uri,
  });
  const entries = await Promise.all(items.map(({ skill }) => entryFor(mcp, skill, exchange.caller)));
  const skills = entries.filter((entry) => entry !== undefined);
  await mcp.pipeline.recordList("skills/list", exchange, skills.length);
  return { skills, ...(nextCursor !== undefined && { nextCursor }), ...CACHE };
}

/** `skills/get`: one of them, by the URI of its SKILL.md. */
export function getSkill(mcp: Mcp, uri: string, exchange: Exchange): Promise<Record<string, unknown>> {
  return readGoverned(mcp, exchange, {
    method: "skills/get",
    uri,
    resource: mcp.pipeline.registry.findResource(uri)?.resource,
    read: async () => {
      const facts = skillAt(mcp, uri, exchange.caller)?.definition.skill;
      const skill = facts?.manifestUri === uri ? await entryFor(mcp, facts, exchange.caller) : undefined;
      if (skill !== undefined) return { skill };
      throw new OwlError("invalid_params", `there is no skill at "${uri.slice(0, 256)}"`, {
        facts: { uri: uri.slice(0, 256) },
        hint: "name the skill by its SKILL.md, as skills/list does",
      });
    },
  });
}

export interface DirectoryParams {
  readonly uri: string;
  readonly cursor?: string | undefined;
}

/** `resources/directory/read`: the direct entries of a folder of a skill. */
export function readDirectory(
  mcp: Mcp,
  { uri, cursor }: DirectoryParams,
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  const { caller } = exchange;
  const folder = folderAt(mcp, uri, caller);
  const resource = folder?.of;
  return readGoverned(mcp, exchange, {
    method: "resources/directory/read",
    uri,
    resource,
    read: async () => {
      const found = folder?.entries()?.filter((entry) => mcp.pipeline.view.seesPart(entry.uri, resource, caller));
      if (found !== undefined) return pageOf(found, uri, cursor);
      throw new OwlError("invalid_params", `"${uri.slice(0, 256)}" is no folder of a skill`, {
        facts: { uri: uri.slice(0, 256) },
        hint: "name a skill's folder, as skill://category/name, or a folder below it",
      });
    },
  });
}

function pageOf(
  entries: NonNullable<ReturnType<SkillFacts["folder"]>>,
  uri: string,
  cursor: string | undefined,
): Record<string, unknown> {
  const page = paginate(entries, { list: `directory ${uri}`, size: PAGE_SIZE, cursor, keyOf: (entry) => entry.uri });
  const resources = page.items.map(({ sizeBytes, ...entry }) => ({
    ...entry,
    ...(sizeBytes !== undefined && { size: sizeBytes }),
  }));
  return { resources, ...(page.nextCursor !== undefined && { nextCursor: page.nextCursor }) };
}

interface SkillRead {
  readonly method: string;
  readonly uri: string;
  /** The skill, if there is one: rules judge the part of it that is read. */
  readonly resource: Resource | undefined;
  /** Throws when it does not exist. */
  readonly read: () => Promise<Record<string, unknown>>;
}

/**
 * Governs the request like every other read. The ledger records that it was read, but not the text, which is in its
 * file. The extension's requests have no `input_required`: a client cannot be asked for approval here, which counts as
 * a denial.
 */
async function readGoverned(
  mcp: Mcp,
  { caller, traceId, requestId, life }: Exchange,
  { method, uri, resource, read }: SkillRead,
): Promise<Record<string, unknown>> {
  let found: Record<string, unknown> = {};
  const { quota } = await mcp.pipeline.govern({
    kind: "resource",
    subject: mcp.pipeline.view.subjectOfResource(uri, resource),
    calledAs: method,
    args: { uri },
    call: { caller, traceId, requestId, life, conversation: silentConversation(mcp.changes) },
    check: async () => {
      found = await read();
      return { uri };
    },
    perform: async () => undefined,
  });
  return { ...found, ...CACHE, ...quotaMeta(quota) };
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

/** The skill that a URI belongs to, if this caller may see it. */
function skillAt({ pipeline }: Mcp, uri: string, caller: Caller): Resource | undefined {
  const resource = pipeline.registry.findResource(uri)?.resource;
  return resource !== undefined && pipeline.visibleResources(caller).includes(resource) ? resource : undefined;
}

interface Folder {
  readonly of: Resource;
  readonly entries: () => ReturnType<SkillFacts["folder"]>;
}

function folderAt(mcp: Mcp, uri: string, caller: Caller): Folder | undefined {
  // The folder itself is not a resource, but the SKILL.md in it, or above it, is.
  for (let end = uri.length; end > "skill://".length; end = uri.lastIndexOf("/", end - 1)) {
    const of = skillAt(mcp, `${uri.slice(0, end)}/SKILL.md`, caller);
    const facts = of?.definition.skill;
    if (of === undefined || facts === undefined) continue;
    return { of, entries: () => facts.folder(decodeURIComponent(uri.slice(end + 1))) };
  }
  return undefined;
}

/** The entry of a skill for this caller, without the files that are hidden from it. */
function entryFor(mcp: Mcp, facts: SkillFacts, caller: Caller): Promise<Skill | undefined> {
  const isHidden = (name: string): boolean =>
    !mcp.pipeline.view.sees(formatSkillUri([...facts.path, ...name.split("/")]), caller);
  const hidden = new Set(facts.names.filter(isHidden));
  return hidden.size === 0 ? entryOf(mcp, facts) : buildEntry(mcp, facts, hidden);
}

const entries = new WeakMap<SkillFacts, Promise<Skill | undefined>>();

/** Built by the SDK, so that it has what the SDK's clients check. Cached until the skill changes. */
function entryOf(mcp: Mcp, facts: SkillFacts): Promise<Skill | undefined> {
  let entry = entries.get(facts);
  if (entry === undefined) {
    entry = buildEntry(mcp, facts, new Set());
    entries.set(facts, entry);
    // A file that could not be read just now may be readable later.
    entry.catch(() => entries.delete(facts));
  }
  return entry;
}

/** `undefined` for a skill that is served as a resource but does not follow the standard's rules. */
async function buildEntry({ logger }: Mcp, facts: SkillFacts, hidden: ReadonlySet<string>): Promise<Skill | undefined> {
  try {
    const files = [...(await facts.files())].filter(([name]) => !hidden.has(name));
    return await skillEntry(facts.path.join("/"), Object.fromEntries(files));
  } catch (error) {
    if (!(error instanceof SkillCatalogError)) throw error;
    const reason = error.problems.map(({ message }) => message).join("; ");
    logger.info("skill is left out of skills/list", { skill: facts.manifestUri, reason });
    return undefined;
  }
}
