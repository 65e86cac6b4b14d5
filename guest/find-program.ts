import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Finds a program on a PATH. */
export function findProgram(name: string, searchPath: string | undefined): string | undefined {
  for (const folder of (searchPath ?? "").split(delimiter)) {
    if (folder === "") continue;
    const candidate = join(folder, name);
    try {
      accessSync(candidate, constants.X_OK);
      if (statSync(candidate).isFile()) return candidate;
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}
