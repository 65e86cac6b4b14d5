import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isBelow, type PlannedVolume } from "../config/plan-volumes.ts";
import type { SourceTexts } from "./source-texts.ts";

/** Says why a file must not be loaded: code that a sandbox may write would run as the server's user. */
export type RefuseFile = (file: string, texts: SourceTexts) => Promise<string | undefined>;

type IsWritable = (path: string) => boolean;

const FIX =
  "keep handlers and what they import out of folders that sandboxes may write, or mount those read-only with :ro";
const SPECIFIER = /\b(?:from|import|require)\s*\(?\s*(["'])([^"'\n]*)\1/g;
/** Imports of which the text does not say what they load. */
const UNREADABLE = /\bcreateRequire\b|\b(?:import|require)\s*\(\s*[^"'\s]|\b(?:from|import)\s*(?:`|\/[*/])/;
const UNREADABLE_PYTHON =
  /\bsys\s*\.\s*path\b|\bimportlib\b|\b__import__\b|\brunpy\b|\baddsitedir\b|\b(?:exec|eval)\s*\(/;

/**
 * For folders that sandboxes may write. What is protected in them is safe, as handlers' own folders are. The check reads texts: what
 * it cannot read for certain is refused.
 */
export function refuseWritableImports(volumes: readonly PlannedVolume[]): RefuseFile {
  const writable = volumes.filter(({ isReadOnly }) => !isReadOnly);
  const isInside = (path: string): boolean => writable.some(({ hostPath }) => isBelow(path, hostPath));
  const isWritable: IsWritable = (path) =>
    writable.some(
      ({ hostPath, protectedPaths }) =>
        (path === hostPath || isBelow(path, hostPath)) &&
        !protectedPaths.some((each) => each.access !== "pinned" && (path === each.path || isBelow(path, each.path))),
    );
  return async (file, texts) => {
    if (!isInside(realpathSync(file))) return undefined;
    for (const path of [file, ...(await texts.importsOf(file))]) {
      const reason = fileProblem(path, isWritable) ?? importProblem(path, (await texts.read(path)) ?? "", isWritable);
      if (reason !== undefined) return `it is not loaded: ${reason}; ${FIX}`;
    }
    return undefined;
  };
}

function fileProblem(path: string, isWritable: IsWritable): string | undefined {
  const real = realpathSync(path);
  if (isWritable(real) || isWritable(path)) return `sandboxes may write ${path}`;
  return statSync(real).nlink > 1 ? `${path} has another name, by which a sandbox could change it` : undefined;
}

function importProblem(path: string, text: string, isWritable: IsWritable): string | undefined {
  if (path.endsWith(".py"))
    return UNREADABLE_PYTHON.test(text) ? `the text of ${path} does not say which modules it loads` : undefined;
  if (UNREADABLE.test(text)) return `the text of ${path} does not say what it imports`;
  const specifiers = [...text.matchAll(SPECIFIER)].map(([, , specifier = ""]) => specifier);
  const unsafe = specifiers.find((specifier) => !isSafe(specifier, path, isWritable));
  if (unsafe !== undefined) return `${path} imports ${JSON.stringify(unsafe)}, which sandboxes may write or decide on`;
  // Where Node looks for packages, and for what decides which of their files an import means.
  const searched = foldersAbove(path).flatMap((folder) => [join(folder, "node_modules"), join(folder, "package.json")]);
  const open = searched.find(isWritable);
  return open === undefined ? undefined : `sandboxes may make ${open}, until the server is started again`;
}

function isSafe(specifier: string, from: string, isWritable: IsWritable): boolean {
  if (specifier === "owlclaw" || isBuiltin(specifier) || specifier.startsWith("data:")) return true;
  if (specifier.startsWith("#")) return false;
  if (specifier.startsWith("file:")) return URL.canParse(specifier) && !isWritable(fileURLToPath(specifier));
  // Also a file that is not there yet, and whatever a folder says that it means.
  if (/^(?:\.{0,2}\/|\.{1,2}$)/.test(specifier)) return !isWritable(resolve(dirname(from), specifier));
  return isSafePackage(specifier, from, isWritable);
}

function isSafePackage(specifier: string, from: string, isWritable: IsWritable): boolean {
  const name = specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
  const folders = foldersAbove(from);
  // A package may import itself by its name, and its exports say which file that is.
  const scope = folders.map((folder) => join(folder, "package.json")).find((file) => existsSync(file));
  if (scope !== undefined && nameIn(scope) === name) return false;
  const found = folders.map((folder) => join(folder, "node_modules", name)).find((place) => existsSync(place));
  return found !== undefined && !isWritable(found) && !isWritable(realpathSync(found));
}

function nameIn(manifest: string): unknown {
  try {
    const parsed: unknown = JSON.parse(readFileSync(manifest, "utf8"));
    return typeof parsed === "object" && parsed !== null ? Reflect.get(parsed, "name") : undefined;
  } catch {
    // Node refuses a manifest that cannot be read, and with it every import.
    return undefined;
  }
}

function foldersAbove(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...foldersAbove(parent)];
}
