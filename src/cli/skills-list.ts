import type { Skill } from "../skills/load-skill.ts";
import { searchSkills } from "../skills/skill-search.ts";
import type { CommandCall } from "./command-action.ts";
import { openSkills } from "./skills-library.ts";
import { renderTable } from "./table.ts";
import { jsonText } from "./text.ts";

/** `skills list [uri]` and `skills search <words>`: the same table, in the order of URIs or of relevance. */
export async function skillsListCommand(call: CommandCall): Promise<number> {
  const [uri] = call.args;
  return printSkills(call, { words: "", uri });
}

export async function skillsSearchCommand(call: CommandCall): Promise<number> {
  return printSkills(call, { words: call.args.join(" "), uri: undefined });
}

async function printSkills(
  call: CommandCall,
  { words, uri }: { readonly words: string; readonly uri: string | undefined },
): Promise<number> {
  const { terminal, flags } = call;
  const library = await openSkills(call);
  const found = searchSkills(library.skills.values(), words, {
    uri,
    category: typeof flags["category"] === "string" ? flags["category"] : undefined,
    tags: Array.isArray(flags["tag"]) ? flags["tag"].map(String) : undefined,
  });
  if (flags["json"] === true) {
    const skills = found.map(({ skill, score }) => ({ ...summary(skill), ...(words !== "" && { score }) }));
    terminal.out(jsonText({ skills }));
    return 0;
  }
  if (found.length === 0) {
    terminal.err("No skill fits. owlclaw mcp-server skills list shows all of them.\n");
    return 0;
  }
  const rows = found.map(({ skill: { uri: own, metadata } }) => [own, metadata.tags.join(", "), metadata.description]);
  const { width, outColor: color } = terminal;
  terminal.out(renderTable({ columns: ["URI", "TAGS", "DESCRIPTION"], rows, width, color }));
  return 0;
}

function summary({ uri, category, metadata, manifestBytes, modifiedMs, files }: Skill) {
  const { name, title, description, tags, version } = metadata;
  return {
    uri,
    name,
    ...(title !== undefined && { title }),
    description,
    category,
    tags,
    ...(version !== undefined && { version }),
    size: manifestBytes,
    lastModified: new Date(modifiedMs).toISOString(),
    files: [...files.keys()],
  };
}
