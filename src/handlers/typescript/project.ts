import type ts from "typescript-6";
import { dirname, join, resolve, sep } from "node:path";
import type { HandlerProblem } from "../handler-description.ts";
import { compiler } from "./compiler.ts";
import { createHash } from "node:crypto";
import { readRegularFile } from "../cache-file.ts";
import { fileURLToPath } from "node:url";

/** How a group of files is compiled, and the configuration files that determine it. */
export interface Project {
  readonly folder: string;
  readonly options: ts.CompilerOptions;
  /** Declaration files of the project. */
  readonly ambientFiles: readonly string[];
  readonly configFiles: readonly string[];
  readonly problems: readonly HandlerProblem[];
}

/** For files without a tsconfig.json. */
const DEFAULTS: ts.CompilerOptions = {
  strict: true,
  target: compiler.ScriptTarget.ESNext,
  lib: ["lib.esnext.d.ts"],
  module: compiler.ModuleKind.Preserve,
  moduleResolution: compiler.ModuleResolutionKind.Bundler,
};

/** Only types are read: what the project emits or forbids does not matter. */
const ALWAYS: ts.CompilerOptions = {
  allowJs: true,
  noEmit: true,
  skipLibCheck: true,
  composite: false,
  incremental: false,
  allowImportingTsExtensions: true,
};

/** The nearest file of this name in the folders above, and the paths that were checked before. */
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
  // "No inputs were found" and similar errors concern the project's own build.
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

/** Handlers run in Node: its types are included by default. */
function withNode(options: ts.CompilerOptions): ts.CompilerOptions {
  return options.types === undefined ? { ...options, types: ["node"] } : options;
}

function configProblem(file: string, diagnostic: ts.Diagnostic): HandlerProblem {
  return {
    file,
    message: compiler.flattenDiagnosticMessageText(diagnostic.messageText, " "),
    fix: "correct tsconfig.json; until then its handlers are described with the valid options",
  };
}

export function isDeclarationFile(name: string): boolean {
  return /\.d\.[cm]?ts$/.test(name);
}

/** Reads files and records their digests, so that later changes are detected. */
export class ReadLog {
  readonly digests: Record<string, string> = {};

  readonly read = (path: string): string | undefined => {
    try {
      const bytes = readRegularFile(path);
      this.digests[path] = createHash("sha256").update(bytes).digest("base64url");
      // The compiler decodes UTF-16.
      const isUtf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
      return isUtf16 ? compiler.sys.readFile(path) : bytes.toString("utf8").replace(/^\uFEFF/, "");
    } catch {
      // The compiler asks for files that do not exist.
      return undefined;
    }
  };
}

const IS_SOURCE = import.meta.url.endsWith(".ts");
const OWN_ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** The file that "owlclaw" resolves to in a file without the package installed. */
const PUBLIC_ENTRY: string = resolve(OWN_ROOT, IS_SOURCE ? "index.ts" : "index.d.ts");

/** Whether it is a type of this package's public API with one of these names. */
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

/** A compiler host that records which files were read and which were missing: both determine when a result is outdated. */
export interface TrackingHost extends ts.CompilerHost {
  /** The imported files of each file. */
  readonly imports: ReadonlyMap<string, readonly string[]>;
  /** For each file, missing paths that would change its imports if they existed. */
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
      // The shared cache is used for installed packages only, since their files do not change.
      const shared = isInstalled(from) ? cache : undefined;
      const resolutions = literals.map((literal) => {
        const mode = compiler.getModeForUsageLocation(file, literal, ownOptions);
        return resolveImport(literal.text, { from, mode, options, cache: shared, readPackage });
      });
      const found = resolutions.map(({ module }) => module?.resolvedFileName);
      imports.set(
        from,
        found.filter((path) => path !== undefined),
      );
      if (!isInstalled(from))
        missing.set(
          from,
          resolutions.flatMap((found) => found.missing),
        );
      return resolutions.map(({ module }) => ({ resolvedModule: module }));
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

function resolveImport(name: string, { from, mode, options, cache, readPackage }: Search): Resolution {
  const tried: string[] = [];
  const host: ts.ModuleResolutionHost = {
    ...compiler.sys,
    useCaseSensitiveFileNames: compiler.sys.useCaseSensitiveFileNames,
    fileExists(path) {
      const isThere = compiler.sys.fileExists(path);
      if (!isThere) tried.push(path);
      return isThere;
    },
    readFile: readPackage,
  };
  const { resolvedModule } = compiler.resolveModuleName(name, from, options, host, cache, undefined, mode);
  if (resolvedModule === undefined && name === "owlclaw") return { module: ownEntry(), missing: [] };
  const wouldShadow = tried.filter((path) => !isInstalled(path) && !path.endsWith("/package.json"));
  return { module: resolvedModule, missing: resolvedModule === undefined ? tried : wouldShadow };
}

interface Resolution {
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
