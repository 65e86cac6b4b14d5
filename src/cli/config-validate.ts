import { loadConfig } from "../config/load.ts";
import type { CommandCall } from "./command-action.ts";
import { toLoadOptions } from "./config-flags.ts";
import { paint } from "./text.ts";

export async function configValidateCommand({ terminal, flags }: CommandCall): Promise<number> {
  const { file } = await loadConfig(toLoadOptions(flags));
  const subject =
    file ?? "No config file was found: the defaults, the environment and the flags are in force. The configuration";
  terminal.out(`${subject} is ${paint("valid", "green", terminal.outColor)}.\n`);
  return 0;
}
