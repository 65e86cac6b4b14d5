import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { LOCK_FILES } from "../setup/lock-entries.mjs";
import type { Generator } from "./generator.ts";

const lockedPackage = z.object({
  dev: z.boolean().optional(),
  optionalDependencies: z.record(z.string(), z.string()).optional(),
});
const lockFile = z.object({ packages: z.record(z.string(), lockedPackage) });
/** The same file again, with every key in its place: an object schema would put the keys that it knows first. */
const orderedFile = z.record(z.string(), z.unknown());
const orderedPackages = z.record(z.string(), z.unknown());

type Packages = z.infer<typeof lockFile>["packages"];

/**
 * Completes lock files with the binaries for other systems. A registry mirror may hold only those for its own; npm then leaves the
 * others out of the lock file without a word, and `npm ci` refuses that file everywhere. `scripts/lock-integrity.mjs` adds their integrity.
 */
export const lockFiles: Generator = async (root) => {
  const files = new Map<string, string>();
  for (const path of LOCK_FILES.filter((name) => existsSync(join(root, name)))) {
    const text = await readFile(join(root, path), "utf8");
    files.set(path, completed(text));
  }
  return files;
};

function completed(text: string): string {
  const file = orderedFile.parse(JSON.parse(text));
  const { packages } = lockFile.parse(file);
  const missing = Object.entries(packages).flatMap(([path, entry]) => missingBelow(packages, path, entry));
  if (missing.length === 0) return text;
  const all = { ...orderedPackages.parse(file["packages"]), ...Object.fromEntries(missing) };
  const sorted = Object.entries(all).sort(([a], [b]) => a.localeCompare(b, "en"));
  return `${JSON.stringify({ ...file, packages: Object.fromEntries(sorted) }, null, 2)}\n`;
}

function missingBelow(packages: Packages, path: string, entry: Packages[string]): [string, object][] {
  const dev = entry.dev === true ? { dev: true } : {};
  return Object.entries(entry.optionalDependencies ?? {})
    .filter(([name]) => !isLocked(packages, path, name))
    .map(([name, version]) => {
      if (!/^\d+\.\d+\.\d+/.test(version)) throw new Error(`${path}: ${name} ${version} is not in the lock file`);
      return [`node_modules/${name}`, { version, ...sortedByKey({ ...platformOf(name), ...dev, optional: true }) }];
    });
}

function sortedByKey(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).sort(([a], [b]) => a.localeCompare(b, "en")));
}

/** Looks where Node would: below the package itself, then in each `node_modules` above it. */
function isLocked(packages: Packages, path: string, name: string): boolean {
  for (let folder = path; ; folder = folder.slice(0, Math.max(folder.lastIndexOf("/node_modules/"), 0))) {
    if (packages[`${folder === "" ? "" : `${folder}/`}node_modules/${name}`] !== undefined) return true;
    if (folder === "") return false;
  }
}

/** These packages carry their platform in their name: `binding-linux-arm64-musl`. npm skips those of other platforms by it. */
function platformOf(name: string): { cpu?: string[]; os?: string[]; libc?: string[] } {
  const words = name.split(/[/-]/);
  const os = words.find((word) =>
    /^(aix|android|darwin|freebsd|linux|netbsd|openbsd|openharmony|sunos|win32)$/.test(word),
  );
  const cpu = words.find((word) => /^(arm|arm64|ia32|loong64|ppc64|riscv64|s390x|wasm32|x64)$/.test(word));
  if (cpu === undefined)
    throw new Error(`${name} is not in the lock file, and its name does not say for which system it is`);
  const isMusl = words.some((word) => word.startsWith("musl"));
  const isGlibc = words.some((word) => word.startsWith("gnu"));
  return {
    cpu: [cpu],
    ...(isMusl ? { libc: ["musl"] } : isGlibc ? { libc: ["glibc"] } : {}),
    ...(os === undefined ? {} : { os: [os] }),
  };
}
