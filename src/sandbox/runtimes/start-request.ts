import type { InstanceSpec, TemplateTree, Resources } from "./runtime.ts";
import { isAbsolute, relative } from "node:path";
import { OwlError } from "../../errors/owl-error.ts";

/** The system inside is read-only, so that pip puts packages into the workspace: nothing of the system's can break. */
const PACKAGE_ENVIRONMENT = { PIP_BREAK_SYSTEM_PACKAGES: "1", PIP_DISABLE_PIP_VERSION_CHECK: "1" };
const MAX_SHM_BYTES = 64 * 1024 * 1024;
const MAX_ID_CHARS = 128;

interface EnvironmentParts {
  readonly template: TemplateTree | undefined;
  /** Folders inside, between those of the template and that of the workspace. */
  readonly path: readonly string[];
  /** Of the runtime itself. */
  readonly own: Readonly<Record<string, string>>;
}

/** Everything a program inside can read of an environment: nothing of the server's own. */
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

/** Memory for `/tmp` and `/dev/shm`: what is written there must leave some for programs. */
export function temporarySpace({ diskBytes, memoryBytes }: Resources): {
  readonly tmpBytes: number;
  readonly shmBytes: number;
} {
  const tmpBytes = Math.min(diskBytes, Math.floor(memoryBytes / 2));
  return { tmpBytes, shmBytes: Math.min(MAX_SHM_BYTES, tmpBytes) };
}

export interface StartRequest {
  readonly spec: InstanceSpec;
  /** What runs inside; the guest unless the probe asks for something else. */
  readonly command?: readonly string[];
  readonly signal: AbortSignal;
}

/** Before anything is made for a cell: what is wrong here is a fault of the server, or an attack on it. */
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

/** Nothing else of the machine is ever written, or removed. */
export function checkBelow(dataFolder: string, folder: string): void {
  if (!isBelow(dataFolder, folder)) throw new OwlError("internal", "a sandbox's folder must lie below the data folder");
}

export function isBelow(dataFolder: string, folder: string): boolean {
  const below = relative(dataFolder, folder);
  return below !== "" && !below.startsWith("..") && !isAbsolute(below);
}
