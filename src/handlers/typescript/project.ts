import type ts from "typescript-6";
import { dirname, join, resolve, sep } from "node:path";
import type { HandlerProblem } from "../handler-description.ts";
import { compiler } from "./compiler.ts";
import { createHash } from "node:crypto";
import { readRegularFile } from "./fingerprints.ts";
import { fileURLToPath } from "node:url";

/** How a group of files is compiled, and what that was read from. */
export interface Project {
  readonly folder: string;
  readonly options: ts.CompilerOptions;
  /** Declarations that the project brings along. */
  readonly ambientFiles: readonly string[];
  readonly configFiles: readonly string[];
  readonly problems: readonly HandlerProblem[];
}

/** For files that no tsconfig.json speaks for. */
const DEFAULTS: ts.CompilerOptions = {
  strict: true,
  target: compiler.ScriptTarget.ESNext,
  lib: ["lib.esnext.d.ts"],
  module: compiler.ModuleKind.Preserve,
  moduleResolution: compiler.ModuleResolutionKind.Bundler,
};

/** We only read types: whatever a project wants to emit or forbid does not matter. */
const ALWAYS: ts.CompilerOptions = {
  allowJs: true,
  noEmit: true,
  skipLibCheck: true,
  composite: false,
  incremental: false,
  allowImportingTsExtensions: true,
};

/** The nearest folder with one of these decides for a file. */
export function nearestFile(name: string, file: string): { found?: string; missing: readonly string[] } {
  const missing: string[] = [];
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const candidate = join(folder, name);
    if (compiler.sys.fileExists(candidate)) return { found: candidate, missing };
    missing.push(candidate);
    if (dirname(folder) === folder) return { missing };
  }
}

export function loadProject(configFile: string | undefined, folder: string, log: ReadLog): Project {
  if (configFile === undefined) {
    return { folder, options: withNode({ ...DEFAULTS, ...ALWAYS }), ambientFiles: [], configFiles: [], problems: [] };
  }
  const configFiles: string[] = [];
  const host: ts.ParseConfigHost = {
    ...compiler.sys,
    useCaseSensitiveFileNames: compiler.sys.useCaseSensitiveFileNames,
    readFile(path) {
      configFiles.push(path);
      return log.read(path);
    },
  };
  const source = compiler.readJsonConfigFile(configFile, (path) => host.readFile(path));
  const parsed = compiler.parseJsonSourceFileConfigFileContent(
    source,
    host,
    dirname(configFile),
    undefined,
    configFile,
  );
  // "No inputs were found" and its like are about the project's own build.
  const errors = compiler.getConfigFileParsingDiagnostics(parsed).filter(({ code }) => !IGNORED_CODES.has(code));
  return {
    folder: dirname(configFile),
    options: withNode({ ...parsed.options, ...ALWAYS }),
    ambientFiles: parsed.fileNames.filter(isDeclarationFile),
    configFiles: [...new Set([configFile, ...configFiles])],
    problems: errors.map((found) => configProblem(configFile, found)),
  };
}

const IGNORED_CODES = new Set([18_002, 18_003]);

/** Handlers run in Node; a project need not say so. */
function withNode(options: ts.CompilerOptions): ts.CompilerOptions {
  return options.types === undefined ? { ...options, types: ["node"] } : options;
}

function configProblem(file: string, diagnostic: ts.Diagnostic): HandlerProblem {
  return {
    file,
    message: compiler.flattenDiagnosticMessageText(diagnostic.messageText, " "),
    fix: "correct tsconfig.json; until then its handlers are read with what could be understood",
  };
}

export function isDeclarationFile(name: string): boolean {
  return /\.d\.[cm]?ts$/.test(name);
}

/** Reads files and remembers the digest of exactly what was read: a file that changes meanwhile is noticed later. */
export class ReadLog {
  readonly digests: Record<string, string> = {};

  readonly read = (path: string): string | undefined => {
    try {
      const bytes = readRegularFile(path);
      this.digests[path] = createHash("sha256").update(bytes).digest("base64url");
      // UTF-16 is the compiler's own business.
      const isUtf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
      return isUtf16 ? compiler.sys.readFile(path) : bytes.toString("utf8").replace(/^\uFEFF/, "");
    } catch {
      // The compiler asks for files that are not there as a matter of course.
      return undefined;
    }
  };
}

const IS_SOURCE = import.meta.url.endsWith(".ts");
const OWN_ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** What the name "owlclaw" means in a file that no project has installed it for. */
const PUBLIC_ENTRY: string = resolve(OWN_ROOT, IS_SOURCE ? "index.ts" : "index.d.ts");

/** Is it a type of this package's public API with one of these names? */
export function isPublicType(type: ts.Type, names: readonly string[]): boolean {
  const symbols = [type.aliasSymbol, type.getSymbol()].filter((symbol) => symbol !== undefined);
  return symbols.some(
    (symbol) =>
      names.includes(symbol.name) &&
      (symbol.declarations ?? []).some((declaration) => isOwnFile(declaration.getSourceFile().fileName)),
  );
}

function isOwnFile(file: string): boolean {
  return resolve(file).startsWith(OWN_ROOT + sep) || file.includes("/node_modules/owlclaw/");
}

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
