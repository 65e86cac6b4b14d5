import { dirname, join } from "node:path";
import type ts from "typescript-6";
import type { HandlerProblem } from "../handler-description.ts";
import { compiler } from "./compiler.ts";
import type { ReadLog } from "./read-log.ts";

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
