import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { basename, isAbsolute, join, resolve } from "node:path";
import type { Candidate } from "./candidate.ts";
import type { FieldFacts } from "./field.ts";
import type { Environment } from "./text-layers.ts";
import { resolveVolume } from "./volume.ts";

type PathKind = NonNullable<FieldFacts["path"]>;

/** Paths mean what they mean where they were written: a file's folder, or the working directory. */
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

/** The folder for everything the server writes when `sandbox.root` is not set, after the XDG base directory rules. */
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

/** A bare name is a program of the PATH, unless something of that name stands there. */
function resolveProgram(folder: string, text: string): string {
  const file = resolveFile(folder, text);
  return basename(text) === text && !existsSync(file) ? text : file;
}

function resolveGlob(folder: string, text: string): string {
  if (text === "") return text;
  return text.startsWith("!") ? `!${resolve(folder, text.slice(1))}` : resolve(folder, text);
}
