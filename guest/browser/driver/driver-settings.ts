import { env } from "node:process";
import { realpathSync } from "node:fs";
import type { ChromiumOptions } from "./chromium.ts";

/** What the guest tells the driver by its environment. */
interface DriverSettings extends ChromiumOptions {
  readonly workspacePath: string;
  readonly workspaceRealPath: string;
}

export function readDriverSettings(): DriverSettings {
  const workspacePath = env["OWLCLAW_WORKSPACE"] ?? process.cwd();
  const port = env["OWLCLAW_PROXY_PORT"];
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !name.startsWith("OWLCLAW_")) environment[name] = value;
  }
  return {
    workspacePath,
    workspaceRealPath: realpathSync(workspacePath),
    executable: env["OWLCLAW_CHROMIUM"] ?? "",
    proxyPort: port === undefined ? undefined : Number(port),
    environment,
  };
}
