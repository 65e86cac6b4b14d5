import { loadConfig } from "../config/load.ts";
import { SkillLibrary } from "../skills/skill-library.ts";
import { type SkillProblem, describeProblem } from "../skills/scan-skills.ts";
import type { CommandCall } from "./command-action.ts";
import { toLoadOptions } from "./config-flags.ts";
import type { Terminal } from "./terminal.ts";
import { paint, withoutTerminalControls } from "./text.ts";
import { UsageError } from "./usage-error.ts";

/** The configured skills, as they are on the disk now. */
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
