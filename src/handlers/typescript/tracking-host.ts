import type ts from "typescript-6";
import { compiler } from "./compiler.ts";
import type { Project } from "./project.ts";
import { PUBLIC_ENTRY } from "./public-types.ts";
import type { ReadLog } from "./read-log.ts";

/** A compiler host that remembers what was read and what was looked for in vain: both decide when a result is stale. */
export interface TrackingHost extends ts.CompilerHost {
  /** For each file, the files that its imports lead to. */
  readonly imports: ReadonlyMap<string, readonly string[]>;
  /** For each file, paths that would change its imports if they came to be. */
  readonly missing: ReadonlyMap<string, readonly string[]>;
  readonly packageFiles: ReadonlySet<string>;
}

export function trackingHost({ options, folder }: Project, log: ReadLog): TrackingHost {
  const imports = new Map<string, readonly string[]>();
  const missing = new Map<string, readonly string[]>();
  const packageFiles = new Set<string>();
  const base = compiler.createCompilerHost(options, true);
  base.readFile = log.read;
  const cache = compiler.createModuleResolutionCache(folder, (name) => base.getCanonicalFileName(name), options);
  const readPackage = (path: string): string | undefined => {
    packageFiles.add(path);
    return log.read(path);
  };
  return {
    ...base,
    imports,
    missing,
    packageFiles,
    getCurrentDirectory: () => folder,
    resolveModuleNameLiterals(literals, from, _redirect, ownOptions, file) {
      // What is installed does not move: only there a shared cache may keep us from looking.
      const shared = isInstalled(from) ? cache : undefined;
      const looked = literals.map((literal) => {
        const mode = compiler.getModeForUsageLocation(file, literal, ownOptions);
        return lookFor(literal.text, { from, mode, options, cache: shared, readPackage });
      });
      const found = looked.map(({ module }) => module?.resolvedFileName);
      imports.set(
        from,
        found.filter((path) => path !== undefined),
      );
      if (!isInstalled(from)) missing.set(from, looked.flatMap(missingOf));
      return looked.map(({ module }) => ({ resolvedModule: module }));
    },
  };
}

interface Search {
  readonly from: string;
  readonly mode: ts.ResolutionMode;
  readonly options: ts.CompilerOptions;
  readonly cache: ts.ModuleResolutionCache | undefined;
  readonly readPackage: (path: string) => string | undefined;
}

function lookFor(name: string, { from, mode, options, cache, readPackage }: Search): Looked {
  const lookedFor: string[] = [];
  const host: ts.ModuleResolutionHost = {
    ...compiler.sys,
    useCaseSensitiveFileNames: compiler.sys.useCaseSensitiveFileNames,
    fileExists(path) {
      const isThere = compiler.sys.fileExists(path);
      if (!isThere) lookedFor.push(path);
      return isThere;
    },
    readFile: readPackage,
  };
  const { resolvedModule } = compiler.resolveModuleName(name, from, options, host, cache, undefined, mode);
  if (resolvedModule === undefined && name === "owlclaw") return { module: ownEntry(), missing: [] };
  const wouldShadow = lookedFor.filter((path) => !isInstalled(path) && !path.endsWith("/package.json"));
  return { module: resolvedModule, missing: resolvedModule === undefined ? lookedFor : wouldShadow };
}

function missingOf({ missing }: Looked): readonly string[] {
  return missing;
}

interface Looked {
  readonly module: ts.ResolvedModuleFull | undefined;
  readonly missing: readonly string[];
}

function isInstalled(path: string): boolean {
  return path.includes("/node_modules/");
}

function ownEntry(): ts.ResolvedModuleFull {
  const extension = PUBLIC_ENTRY.endsWith(".d.ts") ? compiler.Extension.Dts : compiler.Extension.Ts;
  return { resolvedFileName: PUBLIC_ENTRY, extension, isExternalLibraryImport: false };
}
