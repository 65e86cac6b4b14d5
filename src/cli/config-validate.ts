import { loadConfig } from "../config/load.ts";
import type { CommandCall } from "./command-action.ts";
import { toLoadOptions } from "./config-flags.ts";
import { EXIT } from "./exit-code.ts";
import type { Terminal } from "./terminal.ts";
import { paint } from "./text.ts";

export async function configValidateCommand({ terminal, flags }: CommandCall): Promise<number> {
  const { config, file } = await loadConfig(toLoadOptions(flags));
  const subject =
    file ?? "No config file was found: the defaults, the environment and the flags are in force. The configuration";
  terminal.out(`${subject} is ${paint("valid", "green", terminal.outColor)}.\n`);
  return config.skills.dir === "" ? EXIT.ok : checkSkills(terminal, config.skills.dir);
}

async function checkSkills(terminal: Terminal, dir: string): Promise<number> {
  const { printProblems, readSkills } = await import("./skills-library.ts");
  const { problems } = await readSkills(dir);
  printProblems(terminal, problems);
  const errors = problems.filter(({ severity }) => severity === "error").length;
  if (errors === 0) return EXIT.ok;
  terminal.err(`${errors} of the problems above keep skills or files in ${dir} from being served.\n`);
  return EXIT.failure;
}
