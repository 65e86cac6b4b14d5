import type { InstanceSpec, TemplateTree, Resources } from "./runtime.ts";
import { isAbsolute, relative } from "node:path";
import { OwlError } from "../../errors/owl-error.ts";

/** pip may override its protection of system packages: the system is read-only, so packages go into the workspace. */
const PACKAGE_ENVIRONMENT = { PIP_BREAK_SYSTEM_PACKAGES: "1", PIP_DISABLE_PIP_VERSION_CHECK: "1" };
const MAX_SHM_BYTES = 64 * 1024 * 1024;
const MAX_ID_CHARS = 128;

interface EnvironmentParts {
  readonly template: TemplateTree | undefined;
  /** Folders on the PATH, after those of the template and before that of the workspace. */
  readonly path: readonly string[];
  /** Variables of the runtime. */
  readonly own: Readonly<Record<string, string>>;
}

/** The whole environment of programs inside: nothing of the server's environment. */
export function instanceEnvironment(
  spec: InstanceSpec,
  { template, path, own }: EnvironmentParts,
): Record<string, string> {
  const folders = [...(template?.path ?? []), ...path, `${spec.workspacePath}/.local/bin`];
  return {
    HOME: spec.workspacePath,
    PATH: [...new Set(folders)].join(":"),
    LANG: "C.UTF-8",
    TMPDIR: "/tmp",
    USER: "sandbox",
    LOGNAME: "sandbox",
    SHELL: "/bin/bash",
    ...PACKAGE_ENVIRONMENT,
    ...template?.env,
    ...spec.env,
    OWLCLAW_WORKSPACE: spec.workspacePath,
    ...own,
  };
}

/** Sizes of `/tmp` and `/dev/shm`. Both are in memory, so they get at most half of it. */
export function temporarySpace({ diskBytes, memoryBytes }: Resources): {
  readonly tmpBytes: number;
  readonly shmBytes: number;
} {
  const tmpBytes = Math.min(diskBytes, Math.floor(memoryBytes / 2));
  return { tmpBytes, shmBytes: Math.min(MAX_SHM_BYTES, tmpBytes) };
}

export interface StartRequest {
  readonly spec: InstanceSpec;
  /** What runs inside; absent: the program of the spec, or the guest. */
  readonly command?: readonly string[];
  readonly signal: AbortSignal;
}

/** Checked before anything is made for an instance: an invalid value is a fault of the server or an attack on it. */
export function checkSpec(
  { id, folder, env }: InstanceSpec,
  { dataFolder, maxIdChars = MAX_ID_CHARS }: { readonly dataFolder: string; readonly maxIdChars?: number },
): void {
  if (!/^[A-Za-z0-9_-]+$/.test(id) || id.length > maxIdChars)
    throw new OwlError("internal", `not an id of a sandbox: ${JSON.stringify(id)}`);
  checkBelow(dataFolder, folder);
  for (const [name, value] of Object.entries(env)) {
    if (name === "" || /[=\0]/.test(name) || value.includes("\0")) {
      throw new OwlError("invalid_params", `not a variable of an environment: ${JSON.stringify(name)}`);
    }
  }
}

/** The runtime writes and removes nothing outside the data folder. */
export function checkBelow(dataFolder: string, folder: string): void {
  if (!isBelow(dataFolder, folder)) throw new OwlError("internal", "a sandbox's folder must lie below the data folder");
}

export function isBelow(dataFolder: string, folder: string): boolean {
  const below = relative(dataFolder, folder);
  return below !== "" && !below.startsWith("..") && !isAbsolute(below);
}
