import { type LoadedConfig, loadConfig } from "../config/load.ts";
import type { CommandCall } from "./command-action.ts";
import { toLoadOptions } from "./config-flags.ts";
import { EXIT } from "./exit-code.ts";
import type { Terminal } from "./terminal.ts";
import { paint, withoutTerminalControls } from "./text.ts";
import { untrustedNote } from "./untrusted-note.ts";

export async function configValidateCommand({ terminal, flags }: CommandCall): Promise<number> {
  const loaded = await loadConfig({ ...toLoadOptions(flags), acceptsUntrusted: true });
  const { config, file } = loaded;
  const subject =
    file ?? "No config file was found: the defaults, the environment and the flags are in force. The configuration";
  terminal.out(`${subject} is ${paint("valid", "green", terminal.outColor)}.\n`);
  // Checking handlers runs their code.
  const { isTrusted } = loaded;
  if (!isTrusted) terminal.err(untrustedNote(loaded));
  const codes = [
    config.skills.dir === "" ? EXIT.ok : await checkSkills(terminal, config.skills.dir),
    config.handlers.paths.length === 0 || !isTrusted ? EXIT.ok : await checkHandlerFiles(terminal, loaded),
  ];
  return codes.find((code) => code !== EXIT.ok) ?? EXIT.ok;
}

/** `orders.ts:14:29: error: …; …`, the form that the problems of skills have too. */
async function checkHandlerFiles(terminal: Terminal, loaded: LoadedConfig): Promise<number> {
  const { checkHandlers } = await import("../server/check-handlers.ts");
  const problems = await checkHandlers(loaded);
  for (const { file, line, column, message, fix } of problems) {
    const place = [file, line, line === undefined ? undefined : column].filter((part) => part !== undefined).join(":");
    const text = withoutTerminalControls(`${place}: error: ${message}${fix === undefined ? "" : `; ${fix}`}`);
    terminal.err(`${paint(text, "red", terminal.errColor)}\n`);
  }
  if (problems.length === 0) return EXIT.ok;
  terminal.err(`${problems.length} of the problems above keep handlers from being served.\n`);
  return EXIT.failure;
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
