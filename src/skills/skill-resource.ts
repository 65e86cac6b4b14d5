import { type ResourceContents, META } from "../capability/content.ts";
import type { CallContext } from "../capability/context.ts";
import type { ResourceDefinition } from "../capability/define.ts";
import type { SkillEntry, SkillFacts } from "../capability/skill.ts";
import { OwlError } from "../errors/owl-error.ts";
import { withoutUndefined } from "../platform/records.ts";
import { MAX_MANIFEST_BYTES, type Skill } from "./load-skill.ts";
import { renderContent, mimeTypeOf } from "./skill-contents.ts";
import type { SkillLibrary } from "./skill-library.ts";
import { formatSkillUri, MANIFEST, parseSkillUri } from "../capability/skill-uri.ts";

const SKILL_TEMPLATE = "skill://{+path}";
const FOLDER_TYPE = "inode/directory";
const MAX_COMPLETIONS = 1000;

/** The resource of a skill; its files are read through it too. */
export function toResourceDefinition(library: SkillLibrary, skill: Skill): ResourceDefinition {
  const { uri, path, metadata, category, manifestBytes, modifiedMs } = skill;
  return {
    uri,
    name: metadata.name,
    ...(metadata.title !== undefined && { title: metadata.title }),
    description: metadata.description,
    mimeType: mimeTypeOf(MANIFEST),
    size: manifestBytes,
    annotations: { audience: ["assistant"], lastModified: new Date(modifiedMs).toISOString() },
    _meta: { [META.skill]: { category, ...shownMetadata(skill) } },
    skill: toFacts(library, skill),
    read: (asked, _variables, context) => {
      const name = asked === uri ? MANIFEST : parseSkillUri(asked).slice(path.length).join("/") || MANIFEST;
      return readSkillFile(library, { skill, name, uri: asked, context });
    },
  };
}

/** The template of all skill URIs: resolves the URI of a skill or of one of its files to the skill. */
export function skillTemplate(
  library: SkillLibrary,
  definitionOf: (skill: Skill) => ResourceDefinition,
): ResourceDefinition {
  return {
    uri: SKILL_TEMPLATE,
    name: "skill",
    title: "Skills",
    description:
      "A skill as skill://category/name, and its files as skill://category/name/references/file.md. List the resources for those that exist.",
    complete: { path: (value) => completePath(library, value) },
    resolve: (uri) => {
      const found = library.find(parseSkillUri(uri));
      return found?.skill.files.has(found.name) === true ? definitionOf(found.skill) : undefined;
    },
    read: (uri) => {
      throw notFound(uri);
    },
  };
}

async function readSkillFile(
  library: SkillLibrary,
  options: { readonly skill: Skill; readonly name: string; readonly uri: string; readonly context: CallContext },
): Promise<ResourceContents> {
  const { skill, name, uri, context } = options;
  const file = skill.files.get(name);
  if (file === undefined) throw notFound(uri);
  try {
    const content = await library.content(file);
    return renderContent(content, { uri, mimeType: mimeTypeOf(name), options: context.readOptions });
  } catch (error) {
    if (error instanceof OwlError) throw error;
    // The message of the system error would reveal paths of the server.
    throw new OwlError("resource_not_found", `"${uri.slice(0, 256)}" cannot be read any more`, {
      facts: { uri: uri.slice(0, 256) },
      cause: error,
    });
  }
}

function toFacts(library: SkillLibrary, skill: Skill): SkillFacts {
  return {
    path: skill.path,
    manifestUri: formatSkillUri([...skill.path, MANIFEST]),
    category: skill.category,
    tags: skill.metadata.tags,
    names: [...skill.files.keys()],
    files: async () => {
      const files = new Map<string, Uint8Array>();
      for (const [name, file] of skill.files) files.set(name, (await library.content(file)).bytes);
      return files;
    },
    folder: (name) => entriesOf(skill, name),
  };
}

function entriesOf(skill: Skill, folder: string): readonly SkillEntry[] | undefined {
  if (folder !== "" && !skill.folders.includes(folder)) return undefined;
  const isDirectlyIn = (name: string): boolean => parentOf(name) === folder;
  const uriOf = (name: string): string => formatSkillUri([...skill.path, ...name.split("/")]);
  const folders = skill.folders
    .filter(isDirectlyIn)
    .map((name): SkillEntry => ({ uri: uriOf(name), name: lastOf(name), mimeType: FOLDER_TYPE }));
  const files = [...skill.files.values()]
    .filter(({ name }) => isDirectlyIn(name))
    .map(({ name, sizeBytes }): SkillEntry => ({
      uri: uriOf(name),
      name: lastOf(name),
      mimeType: mimeTypeOf(name),
      sizeBytes,
    }));
  return [...folders, ...files].sort((a, b) => (a.uri < b.uri ? -1 : 1));
}

function shownMetadata({ metadata }: Skill): Record<string, unknown> {
  const { tags, version, license, compatibility, allowedTools, riskLevel, requiresConfirmation, constraints } =
    metadata;
  const tools = allowedTools.length === 0 ? undefined : allowedTools;
  const shown = { tags, version, license, compatibility, allowedTools: tools };
  return withoutUndefined({ ...shown, riskLevel, requiresConfirmation, constraints });
}

/** Skills with this prefix; behind a complete skill path, its files. */
function completePath(library: SkillLibrary, value: string): readonly string[] {
  const found: string[] = [];
  for (const skill of library.skills.values()) {
    const own = skill.uri.slice("skill://".length);
    if (own.startsWith(value)) found.push(own);
    if (value.startsWith(`${own}/`))
      for (const name of skill.files.keys()) {
        const file = formatSkillUri([...skill.path, ...name.split("/")]).slice("skill://".length);
        if (file.startsWith(value)) found.push(file);
      }
    if (found.length >= MAX_COMPLETIONS) break;
  }
  return found.sort();
}

function notFound(uri: string): OwlError {
  const shown = uri.slice(0, 256);
  return new OwlError("resource_not_found", `there is no skill or file of a skill at "${shown}"`, {
    facts: { uri: shown },
  });
}

function parentOf(name: string): string {
  return name.includes("/") ? name.slice(0, name.lastIndexOf("/")) : "";
}

function lastOf(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

/** Text for a tool's description: the skill's summary and URI, or with `inline` all of SKILL.md. */
export async function describeSkill(
  library: SkillLibrary,
  uri: string,
  { inline }: { readonly inline: boolean },
): Promise<string | undefined> {
  const found = library.find(parseSkillUri(uri));
  if (found === undefined || found.name !== MANIFEST) return undefined;
  const { skill } = found;
  const manifest = skill.files.get(MANIFEST);
  if (!inline || manifest === undefined) return `Skill ${skill.uri}: ${skill.metadata.description}`;
  const { text = "" } = await library.content(manifest);
  return `Skill ${skill.uri}:\n\n${text.slice(0, MAX_MANIFEST_BYTES)}`;
}
