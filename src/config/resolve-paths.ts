import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { basename, isAbsolute, join, resolve } from "node:path";
import type { Candidate } from "./candidate.ts";
import type { FieldFacts } from "./field.ts";
import type { Environment } from "./text-layers.ts";
import { resolveVolume } from "./volume.ts";

type PathKind = NonNullable<FieldFacts["path"]>;

/**
 * Makes relative paths absolute: against the folder of the configuration file, or the working directory for flags and
 * variables.
 */
export function resolvePaths(candidate: Candidate, folder: string): Candidate {
  const { key, value } = candidate;
  if (key.pathKind === undefined) return candidate;
  const toAbsolute = RESOLVERS[key.pathKind].bind(undefined, folder);
  if (typeof value === "string") return { ...candidate, value: toAbsolute(value) };
  if (!Array.isArray(value)) return candidate;
  return { ...candidate, value: value.map((item: unknown) => (typeof item === "string" ? toAbsolute(item) : item)) };
}

const RESOLVERS: Readonly<Record<PathKind, (folder: string, text: string) => string>> = {
  file: resolveFile,
  pem: resolveFile,
  glob: resolveGlob,
  program: resolveProgram,
  volume: resolveVolume,
};

/**
 * The folder for all data of the server when `sandbox.root` is not set. It follows the XDG base directory
 * specification.
 */
export function defaultDataFolder(env: Environment): string {
  const configured = env["XDG_DATA_HOME"];
  const base = configured !== undefined && isAbsolute(configured) ? configured : join(homedir(), ".local", "share");
  return join(base, "owlclaw");
}

export function isPem(text: string): boolean {
  return text.trimStart().startsWith("-----BEGIN ");
}

function resolveFile(folder: string, text: string): string {
  return text === "" || isPem(text) ? text : resolve(folder, text);
}

/** A bare name is a program on the PATH, unless a file of this name exists in the folder. */
function resolveProgram(folder: string, text: string): string {
  const file = resolveFile(folder, text);
  return basename(text) === text && !existsSync(file) ? text : file;
}

function resolveGlob(folder: string, text: string): string {
  if (text === "") return text;
  return text.startsWith("!") ? `!${resolve(folder, text.slice(1))}` : resolve(folder, text);
}
