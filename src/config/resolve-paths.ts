import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import type { Candidate } from "./candidate.ts";
import type { Environment } from "./text-layers.ts";
import { resolveVolume } from "./volume.ts";

/** Paths mean what they mean where they were written: a file's folder, or the working directory. */
export function resolvePaths(candidate: Candidate, folder: string): Candidate {
  const { key, value } = candidate;
  if (key.pathKind === undefined) return candidate;
  const toAbsolute = (text: string): string =>
    key.pathKind === "glob"
      ? resolveGlob(folder, text)
      : key.pathKind === "volume"
        ? resolveVolume(folder, text)
        : resolveFile(folder, text);
  if (typeof value === "string") return { ...candidate, value: toAbsolute(value) };
  if (!Array.isArray(value)) return candidate;
  return { ...candidate, value: value.map((item: unknown) => (typeof item === "string" ? toAbsolute(item) : item)) };
}

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

function resolveGlob(folder: string, text: string): string {
  if (text === "") return text;
  return text.startsWith("!") ? `!${resolve(folder, text.slice(1))}` : resolve(folder, text);
}
