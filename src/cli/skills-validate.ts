import type { CommandCall } from "./command-action.ts";
import { EXIT } from "./exit-code.ts";
import { openSkills, printProblems } from "./skills-library.ts";
import { jsonText } from "./text.ts";

/** Exit code 1 when something is not served; warnings alone are no failure. */
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
