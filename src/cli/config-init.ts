import { writeFile } from "node:fs/promises";
import { CONFIG_FILE_NAME } from "../config/load.ts";
import { renderSampleYaml } from "../config/render-yaml.ts";
import { TrustedFiles } from "../config/trusted-files.ts";
import { userEnvironment } from "../config/user-environment.ts";
import type { CommandCall } from "./command-action.ts";

export async function configInitCommand({ terminal, args, flags }: CommandCall): Promise<number> {
  const text = renderSampleYaml();
  if (flags["stdout"] === true) {
    terminal.out(text);
    return 0;
  }
  const [file = CONFIG_FILE_NAME] = args;
  try {
    // The file may get a secret later: nobody else needs to read it. "wx" refuses what is there in one step.
    await writeFile(file, text, { flag: flags["force"] === true ? "w" : "wx", mode: 0o600 });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") {
      throw new Error(`${file} is there already. Use --force to replace it, or name another file.`, { cause: error });
    }
    throw error;
  }
  // The user asked for this very text. What is changed in it later must be trusted again.
  new TrustedFiles(userEnvironment().env).trust(file, text);
  terminal.err(`Wrote ${file}. Check it with: owlclaw mcp-server config validate --config ${file}\n`);
  return 0;
}
