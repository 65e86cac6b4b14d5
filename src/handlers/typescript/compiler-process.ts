import { messageOf } from "../../errors/owl-error.ts";
import type ts from "typescript-6";
import { isExtractRequest, type ExtractAnswer, type ExtractedFile } from "./run-compiler.ts";
import { dirname } from "node:path";
import type { HandlerDescription, HandlerProblem } from "../handler-description.ts";
import { compiler } from "./compiler.ts";
import { describeFunction } from "./describe-function.ts";
import { tagText } from "./doc-comment.ts";
import { exportedFunctions } from "./exported-functions.ts";
import {
  isDeclarationFile,
  loadProject,
  nearestFile,
  type Project,
  ReadLog,
  type TrackingHost,
  trackingHost,
} from "./project.ts";

// The entry of the child process: it answers one request and exits.
process.once("message", (request: unknown) => {
  const answer = extractFiles(isExtractRequest(request) ? request.files : []);
  process.send?.(answer, () => process.disconnect());
});
process.once("disconnect", () => process.exit());

interface Group {
  readonly configFile: string | undefined;
  readonly folder: string;
  readonly files: { readonly path: string; readonly missing: readonly string[] }[];
}

/** The functions that the files export as tools. */
function extractFiles(files: readonly string[]): ExtractAnswer {
  const log = new ReadLog();
  const extracted = groupByProject(files).flatMap((group) => {
    const project = loadProject(group.configFile, group.folder, log);
    const host = trackingHost(project, log);
    const rootNames = [...group.files.map(({ path }) => path), ...project.ambientFiles];
    const program = compiler.createProgram({ rootNames, options: project.options, host });
    const shared = sharedFiles(program, host, rootNames);
    return group.files.map(({ path, missing }) => {
      const own = reachable(host, path);
      return {
        file: path,
        ...extractFile(program, path, project),
        // A file that could not be read has no digest; its path is in `missing`.
        dependencies: [...new Set([...own, ...shared, ...project.configFiles])]
          .filter((name) => name !== path && log.digests[name] !== undefined)
          .sort(),
        missing: [...new Set([...missing, ...own.flatMap((name) => host.missing.get(name) ?? [])])].sort(),
      };
    });
  });
  return { extracted, digests: log.digests };
}

function groupByProject(files: readonly string[]): Group[] {
  const groups = new Map<string, Group>();
  for (const path of files) {
    const { found: configFile, missing } = nearestFile("tsconfig.json", path);
    const folder = dirname(configFile ?? nearestFile("package.json", path).found ?? path);
    const key = configFile ?? folder;
    const group = groups.get(key) ?? { configFile, folder, files: [] };
    group.files.push({ path, missing });
    groups.set(key, group);
  }
  return [...groups.values()];
}

type Extract = Pick<ExtractedFile, "handlers" | "origins" | "problems">;

function extractFile(program: ts.Program, path: string, project: Project): Extract {
  const file = program.getSourceFile(path);
  if (file === undefined) return { handlers: [], origins: [], problems: [unreadable(path)] };
  const errors = program.getSyntacticDiagnostics(file);
  if (errors.length > 0)
    return { handlers: [], origins: [], problems: errors.map((found) => syntaxProblem(path, found)) };
  const handlers: HandlerDescription[] = [];
  const origins: string[] = [];
  const problems: HandlerProblem[] = [...project.problems];
  for (const exported of exportedFunctions(program.getTypeChecker(), file)) {
    if (tagText(exported.doc, "hidden") !== undefined) continue;
    try {
      const described = describeFunction(program, exported);
      if (described.handler === undefined) problems.push(...described.problems);
      else {
        handlers.push(described.handler);
        origins.push(`${exported.node.getSourceFile().fileName}:${exported.node.pos}`);
      }
    } catch (error) {
      // An error inside the compiler affects this function only.
      problems.push({ file: path, message: `${exported.name}: ${messageOf(error)}`, fix: "write a simpler type" });
    }
  }
  return { handlers, origins, problems };
}

function unreadable(path: string): HandlerProblem {
  return {
    file: path,
    message: "the file cannot be read",
    fix: "check that it exists and that the server may read it",
  };
}

function syntaxProblem(file: string, { start, file: source, messageText }: ts.Diagnostic): HandlerProblem {
  const message = `syntax error: ${compiler.flattenDiagnosticMessageText(messageText, " ")}`;
  if (source === undefined || start === undefined) return { file, message };
  const { line, character } = compiler.getLineAndCharacterOfPosition(source, start);
  return { file, line: line + 1, column: character + 1, message, fix: "correct the file" };
}

/** The file, and all files that it imports directly or indirectly. */
function reachable(host: TrackingHost, start: string): string[] {
  const found = new Set([start]);
  for (const path of found) for (const next of host.imports.get(path) ?? []) found.add(next);
  return [...found];
}

/** Other files that the program read: global types, package.json files. */
function sharedFiles(program: ts.Program, host: TrackingHost, rootNames: readonly string[]): string[] {
  const imported = new Set(rootNames.flatMap((name) => (isDeclarationFile(name) ? [] : reachable(host, name))));
  const rest = program
    .getSourceFiles()
    .filter((file) => !program.isSourceFileDefaultLibrary(file))
    .map(({ fileName }) => fileName)
    .filter((name) => !imported.has(name));
  return [...rest, ...host.packageFiles];
}
