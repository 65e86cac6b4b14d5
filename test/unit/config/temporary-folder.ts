import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { CONFIG_FILE_NAME } from "../../../src/config/load.ts";
import { TrustedFiles } from "../../../src/config/trusted-files.ts";
import type { Environment } from "../../../src/config/text-layers.ts";

/** A folder that goes away with the test, with these files in it. */
export function temporaryFolder(files: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

/** What the user of a test environment does with `owlclaw mcp-server trust` in a working directory that has a configuration. */
export function trustConfigIn(cwd: string, env: Environment): void {
  const file = join(cwd, CONFIG_FILE_NAME);
  if (existsSync(file)) new TrustedFiles(env).trust(file, readFileSync(file, "utf8"));
}
