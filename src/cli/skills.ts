import { loadConfig } from "../config/load.ts";
import { SkillLibrary } from "../skills/skill-library.ts";
import { type SkillProblem, describeProblem } from "../skills/scan-skills.ts";
import { type CommandCall, UsageError, EXIT } from "./command.ts";
import { toLoadOptions } from "./config-flags.ts";
import type { Terminal } from "./terminal.ts";
import { paint, withoutTerminalControls, jsonText } from "./text.ts";
import type { Skill } from "../skills/load-skill.ts";
import { searchSkills } from "../skills/skill-search.ts";
import { renderTable } from "./table.ts";

/** Reads the configured skills from disk. */
export async function openSkills({ flags }: CommandCall): Promise<SkillLibrary> {
  const { config } = await loadConfig(toLoadOptions(flags));
  if (config.skills.dir === "")
    throw new UsageError("there are no skills: name their folder with --skills or skills.dir");
  return readSkills(config.skills.dir);
}

export async function readSkills(dir: string): Promise<SkillLibrary> {
  const library = new SkillLibrary(dir);
  await library.refresh();
  return library;
}

export function printProblems(terminal: Terminal, problems: readonly SkillProblem[]): void {
  for (const problem of problems) {
    const line = withoutTerminalControls(describeProblem(problem));
    terminal.err(`${paint(line, problem.severity === "error" ? "red" : "yellow", terminal.errColor)}\n`);
  }
}

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

/** Exit code 1 when a skill or file is not served. Warnings alone are not a failure. */
export async function skillsValidateCommand(call: CommandCall): Promise<number> {
  const { terminal, flags } = call;
  const { skills, problems, dir } = await openSkills(call);
  const errors = problems.filter(({ severity }) => severity === "error").length;
  const exitCode = errors > 0 ? EXIT.failure : EXIT.ok;
  if (flags["json"] === true) {
    terminal.out(jsonText({ dir, skills: skills.size, problems }));
    return exitCode;
  }
  printProblems(terminal, problems);
  const warnings = problems.length - errors;
  terminal.out(`${dir}: ${skills.size} served, ${errors} with errors, ${warnings} warnings.\n`);
  return exitCode;
}
