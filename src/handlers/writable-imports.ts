import { isRecord } from "../platform/records.ts";
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isBelow, type PlannedVolume, resolveLinks } from "../config/plan-volumes.ts";
import { importCandidates, type SourceTexts, pythonCandidates } from "./source-texts.ts";

/** Says why a file must not be loaded: code that a sandbox can write would run as the server's user. */
export type RefuseFile = (file: string, texts: SourceTexts) => Promise<string | undefined>;

type IsWritable = (path: string) => boolean;

const FIX =
  "keep handlers and what they import out of folders that sandboxes may write, or mount those read-only with :ro";
const SPECIFIER = /\b(?:from|import|require)\s*\(?\s*(["'])([^"'\n]*)\1/g;
/** Imports whose module is computed. */
const UNREADABLE = /\bcreateRequire\b|\b(?:import|require)\s*\(\s*[^"'\s]|\b(?:from|import)\s*(?:`|\/[*/])/;
const UNREADABLE_PYTHON =
  /\bsys\s*\.\s*path\b|\bimportlib\b|\b__import__\b|\brunpy\b|\baddsitedir\b|\b(?:exec|eval)\s*\(/;

/**
 * For folders that sandboxes can write. Protected paths in them, such as the handlers' own folders, are safe. The check reads
 * the sources and refuses what it cannot resolve for certain.
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
  if (path.endsWith(".py")) return pythonProblem(path, text, isWritable);
  if (UNREADABLE.test(text)) return `the text of ${path} does not say what it imports`;
  const specifiers = [...text.matchAll(SPECIFIER)].map(([, , specifier = ""]) => specifier);
  const unsafe = specifiers.find((specifier) => !isSafe(specifier, path, isWritable));
  if (unsafe !== undefined) return `${path} imports ${JSON.stringify(unsafe)}, which sandboxes may write or decide on`;
  // Where Node looks for packages, and for the package.json that decides how imports resolve.
  const searched = foldersAbove(path).flatMap((folder) => [join(folder, "node_modules"), join(folder, "package.json")]);
  const open = searched.find(isWritable);
  return open === undefined ? undefined : `sandboxes may make ${open}, until the server is started again`;
}

function pythonProblem(path: string, text: string, isWritable: IsWritable): string | undefined {
  if (UNREADABLE_PYTHON.test(text)) return `the text of ${path} does not say which modules it loads`;
  const unsafe = pythonCandidates(path, text).find((candidate) => !isSafePath(candidate, isWritable));
  return unsafe === undefined ? undefined : `${path} may import ${unsafe}, which sandboxes may write`;
}

/** Also checks a file that does not exist yet, through links. */
function isSafePath(path: string, isWritable: IsWritable): boolean {
  return !isWritable(path) && !isWritable(resolveLinks(path).real);
}

function isSafe(specifier: string, from: string, isWritable: IsWritable): boolean {
  if (specifier === "owlclaw" || isBuiltin(specifier) || specifier.startsWith("data:")) return true;
  if (specifier.startsWith("#")) return false;
  if (specifier.startsWith("file:")) return URL.canParse(specifier) && !isWritable(fileURLToPath(specifier));
  // Also a file that does not exist yet, and the entry point of a folder.
  if (/^(?:\.{0,2}\/|\.{1,2}$)/.test(specifier))
    return importCandidates(resolve(dirname(from), specifier)).every((candidate) => isSafePath(candidate, isWritable));
  const name = specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
  // A package may import itself by its name, and its exports decide which file that is.
  const scope = foldersAbove(from)
    .map((folder) => join(folder, "package.json"))
    .find((file) => existsSync(file));
  if (scope !== undefined && manifestAt(scope)["name"] === name) return false;
  return packageAt(name, from) !== undefined && isSafePackage(name, from, { isWritable, seen: new Set() });
}

interface PackageWalk {
  readonly isWritable: IsWritable;
  readonly seen: Set<string>;
}

/** The package and its declared dependencies. In a workspace, one of them may be a link to a folder of the project. */
function isSafePackage(name: string, from: string, walk: PackageWalk): boolean {
  const { isWritable, seen } = walk;
  const found = packageAt(name, from);
  // A package that is not installed is safe as long as no sandbox can create it.
  if (found === undefined) return !packageCandidates(name, from).some(isWritable);
  const real = realpathSync(found);
  if (isWritable(found) || isWritable(real)) return false;
  if (seen.has(real)) return true;
  seen.add(real);
  const manifest = join(real, "package.json");
  return dependenciesIn(manifest).every((dependency) => isSafePackage(dependency, manifest, walk));
}

function packageAt(name: string, from: string): string | undefined {
  return packageCandidates(name, from).find((candidate) => existsSync(candidate));
}

function packageCandidates(name: string, from: string): readonly string[] {
  return foldersAbove(from).map((folder) => join(folder, "node_modules", name));
}

const DEPENDENCIES = ["dependencies", "optionalDependencies", "peerDependencies"];

function dependenciesIn(manifest: string): readonly string[] {
  const fields = manifestAt(manifest);
  return DEPENDENCIES.flatMap((field) => Object.keys(fields[field] ?? {}));
}

function manifestAt(file: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(readFileSync(file, "utf8"));
    return isRecord(parsed) ? parsed : {};
  } catch {
    // Node rejects an invalid manifest, and every import through it.
    return {};
  }
}

function foldersAbove(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...foldersAbove(parent)];
}
