import { isRecord } from "../platform/records.ts";
import { OwlError, messageOf } from "../errors/owl-error.ts";
import type { FileDescription, HandlerDescription, HandlerProblem } from "./handler-description.ts";
import { type LoadedReport, type ReportCache, ImportInputs } from "./report-cache.ts";
import type { Runner } from "./served-file.ts";
import { SourceTexts } from "./source-texts.ts";
import type { RefuseFile } from "./writable-imports.ts";
import { type FileReport, SANDBOXED_FILES, type WireDefinition } from "./workers/worker-protocol.ts";

/** The handlers and definitions of one file. */
export interface DescribedFile {
  readonly file: string;
  readonly handlers: readonly HandlerDescription[];
  readonly definitions: readonly WireDefinition[];
  readonly problems: readonly HandlerProblem[];
  readonly dependencies: readonly string[];
  /** The source of the file and of its imports, by path, as it was read. */
  readonly sources: ReadonlyMap<string, string>;
  /** It could not be imported: what it served before stays. */
  readonly isBroken: boolean;
  /** The cached report, when the file was not loaded. */
  readonly kept: FileReport | undefined;
}

export interface DescribeOptions {
  readonly runnerFor: (file: string) => Runner;
  readonly describeTypes: (files: readonly string[]) => Promise<readonly FileDescription[]>;
  /** Keeps reports for the next start. */
  readonly cache?: ReportCache | undefined;
  /** Whether cached reports are used; otherwise every file is loaded. */
  readonly mayUseCache?: boolean;
  /** The environment of the processes that load the files. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Called before a file is loaded. */
  readonly refuse?: RefuseFile | undefined;
}

/** An exported function, or an export whose text does not show whether it is one. */
const MAY_HAVE_FUNCTIONS =
  /^\s*export\s+(?:default\b|\*|\{|(?:async\s+)?function\b|(?:const|let|var)\s+\w+\s*(?::|=\s*(?:async\b|function\b|\(|<|\w+\s*=>)))/m;

/**
 * Describes files: the report of loading them, or the cached one, and for files that may export plain functions what
 * their types say.
 */
export async function describeFiles(
  files: readonly string[],
  options: DescribeOptions,
): Promise<readonly DescribedFile[]> {
  const texts = new SourceTexts();
  const scripts = files.filter((file) => !file.endsWith(".py"));
  // Read before the import: a later change is reported as another change.
  await Promise.all(files.map((file) => texts.read(file)));
  const [reports, typed] = await Promise.all([
    reportFiles(files, texts, options),
    withFunctions(scripts, texts).then((candidates) => typesOf(candidates, options.describeTypes)),
  ]);
  return Promise.all(files.map((file, index) => merge({ file, texts }, reports[index], typed.get(file))));
}

interface Imported {
  readonly report: FileReport;
  readonly isKept: boolean;
}

async function reportFiles(
  files: readonly string[],
  texts: SourceTexts,
  { runnerFor, cache, mayUseCache = false, environment, refuse }: DescribeOptions,
): Promise<readonly Imported[]> {
  // Reads the imports again, so that the texts that `merge` uses are those after loading.
  const inputs = new ImportInputs({ texts: new SourceTexts(texts), environment });
  const loaded: LoadedReport[] = [];
  const reports = await Promise.all(
    files.map(async (file): Promise<Imported> => {
      const refused = await refuse?.(file, texts);
      if (refused !== undefined) return { report: broken(file, refused), isKept: false };
      const kept = mayUseCache ? await cache?.find(file, inputs) : undefined;
      if (kept !== undefined) return { report: kept, isKept: true };
      const digest = cache === undefined ? undefined : await inputs.digestOf(file);
      const report = await importReport(file, runnerFor(file));
      loaded.push({ file, digest, report });
      return { report, isKept: false };
    }),
  );
  await cache?.add(loaded);
  return reports;
}

/** Loads the file in a worker. */
export async function importReport(file: string, runner: Runner): Promise<FileReport> {
  try {
    const report = await runner.run({ job: { op: "describe", file } });
    if (isReport(report)) return outside(report);
    return broken(file, "the worker sent an invalid description");
  } catch (thrown) {
    return broken(file, messageOf(thrown));
  }
}

function broken(file: string, message: string): FileReport {
  return { definitions: [], problems: [{ file, message }], isBroken: true };
}

/** Removes the path prefix of a worker in a sandbox. */
function outside(report: FileReport): FileReport {
  return {
    ...report,
    problems: report.problems.map((problem) => ({ ...problem, file: toOutside(problem.file) })),
    ...(report.dependencies !== undefined && { dependencies: report.dependencies.map(toOutside) }),
    ...(report.reads !== undefined && { reads: report.reads.map(toOutside) }),
  };
}

function toOutside(file: string): string {
  return file.startsWith(`${SANDBOXED_FILES}/`) ? file.slice(SANDBOXED_FILES.length) : file;
}

/** Starting the compiler takes seconds: only files that may export documented functions are passed to it. */
async function withFunctions(files: readonly string[], sources: SourceTexts): Promise<readonly string[]> {
  const texts = await Promise.all(files.map((file) => sources.read(file)));
  return files.filter((_file, index) => {
    const text = texts[index] ?? "";
    return text.includes("/**") && MAY_HAVE_FUNCTIONS.test(text);
  });
}

async function typesOf(
  files: readonly string[],
  describeTypes: DescribeOptions["describeTypes"],
): Promise<ReadonlyMap<string, FileDescription>> {
  if (files.length === 0) return new Map();
  try {
    const described = await describeTypes(files);
    return new Map(described.map((description) => [description.file, description]));
  } catch (thrown) {
    if (thrown instanceof OwlError && thrown.kind === "shutting_down") throw thrown;
    const message = `its types could not be read: ${messageOf(thrown)}`;
    return new Map(
      files.map((file) => [file, { file, handlers: [], problems: [{ file, message }], dependencies: [] }] as const),
    );
  }
}

async function merge(
  { file, texts }: { readonly file: string; readonly texts: SourceTexts },
  imported: Imported | undefined,
  typed: FileDescription | undefined,
): Promise<DescribedFile> {
  const { handlers = [], problems = [], dependencies: typesOfFiles = [] } = typed ?? {};
  const { report, isKept } = imported ?? { report: broken(file, "it was not loaded"), isKept: false };
  const { functions = [], dependencies: reported = [] } = report;
  const read = file.endsWith(".py") ? [] : await texts.importsOf(file);
  const dependencies = [...new Set([...read, ...typesOfFiles, ...reported])];
  const isBroken = report.isBroken === true;
  const all = isBroken ? [] : [...handlers, ...functions.filter(isHandlerDescription)];
  return {
    file,
    handlers: all.filter(({ isHidden }) => isHidden !== true),
    definitions: report.definitions,
    problems: [...report.problems, ...problems],
    dependencies,
    sources: await texts.codeOf([file, ...dependencies]),
    isBroken,
    kept: isKept ? report : undefined,
  };
}

function isReport(value: unknown): value is FileReport {
  return isRecord(value) && Array.isArray(value["definitions"]) && Array.isArray(value["problems"]);
}

function isHandlerDescription(value: unknown): value is HandlerDescription {
  return isRecord(value) && "name" in value && "inputSchema" in value && "call" in value;
}
