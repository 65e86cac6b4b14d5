import { isAbsolute, relative } from "node:path";
import { OwlError } from "../../errors/owl-error.ts";
import type { InstanceSpec } from "./runtime.ts";

const MAX_ID_CHARS = 128;

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
