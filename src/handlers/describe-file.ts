import { OwlError, messageOf } from "../errors/owl-error.ts";
import type { FileDescription, HandlerDescription, HandlerProblem } from "./handler-description.ts";
import { type LoadedReport, type ReportCache, ImportInputs } from "./report-cache.ts";
import type { Runner } from "./served-file.ts";
import { SourceTexts } from "./source-texts.ts";
import type { RefuseFile } from "./writable-imports.ts";
import { type FileReport, SANDBOXED_FILES, type WireDefinition } from "./workers/worker-protocol.ts";

/** Everything that one file brings. */
export interface DescribedFile {
  readonly file: string;
  readonly handlers: readonly HandlerDescription[];
  readonly definitions: readonly WireDefinition[];
  readonly problems: readonly HandlerProblem[];
  readonly dependencies: readonly string[];
  /** Its own code and that of what it imports, by path, as it was read. */
  readonly sources: ReadonlyMap<string, string>;
  /** It could not be imported at all: what it brought before stays. */
  readonly isBroken: boolean;
  /** Set when no process has loaded it: what it brought earlier, from the same texts. */
  readonly kept: FileReport | undefined;
}

export interface DescribeOptions {
  readonly runnerFor: (file: string) => Runner;
  readonly describeTypes: (files: readonly string[]) => Promise<readonly FileDescription[]>;
  /** Where what was loaded is kept for the next start. */
  readonly cache?: ReportCache | undefined;
  /** Whether what is kept will do; otherwise every file is loaded. */
  readonly mayUseCache?: boolean;
  /** What the processes that load the files inherit. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Asked before a file is loaded. */
  readonly refuse?: RefuseFile | undefined;
}

/** An export that is a function, or of which the text alone does not say what it is. */
const MAY_HAVE_FUNCTIONS =
  /^\s*export\s+(?:default\b|\*|\{|(?:async\s+)?function\b|(?:const|let|var)\s+\w+\s*(?::|=\s*(?:async\b|function\b|\(|<|\w+\s*=>)))/m;

/**
 * Looks at files: what loading them brought, now or when they were the same, and, where there may be plain functions, what
 * their types say.
 */
export async function describeFiles(
  files: readonly string[],
  options: DescribeOptions,
): Promise<readonly DescribedFile[]> {
  const texts = new SourceTexts();
  const scripts = files.filter((file) => !file.endsWith(".py"));
  // Before they are imported: what changes from here on is another change.
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
  // What the files import is read for itself here: what is kept of it for later is read when it has been loaded.
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

/** Loads the file, and says what it brought. */
export async function importReport(file: string, runner: Runner): Promise<FileReport> {
  try {
    const report = await runner.run({ job: { op: "describe", file } });
    if (isReport(report)) return outside(report);
    return broken(file, "the worker described it in a way that nobody understands");
  } catch (thrown) {
    return broken(file, messageOf(thrown));
  }
}

function broken(file: string, message: string): FileReport {
  return { definitions: [], problems: [{ file, message }], isBroken: true };
}

/** A worker in a sandbox knows its files by other paths. */
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

/** The compiler takes seconds when it has to look: files in which it can find nothing are kept from it. */
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
  const { report, isKept } = imported ?? { report: broken(file, "nobody looked at it"), isKept: false };
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
  return (
    typeof value === "object" &&
    value !== null &&
    "definitions" in value &&
    Array.isArray(value.definitions) &&
    "problems" in value &&
    Array.isArray(value.problems)
  );
}

function isHandlerDescription(value: unknown): value is HandlerDescription {
  return typeof value === "object" && value !== null && "name" in value && "inputSchema" in value && "call" in value;
}
