import { OwlError } from "../errors/owl-error.ts";
import type { FileDescription, HandlerDescription, HandlerProblem } from "./handler-description.ts";
import type { Runner } from "./served-file.ts";
import { SourceTexts } from "./source-texts.ts";
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
}

export interface DescribeOptions {
  readonly runnerFor: (file: string) => Runner;
  readonly describeTypes: (files: readonly string[]) => Promise<readonly FileDescription[]>;
}

/** An export that is a function, or of which the text alone does not say what it is. */
const MAY_HAVE_FUNCTIONS =
  /^\s*export\s+(?:default\b|\*|\{|(?:async\s+)?function\b|(?:const|let|var)\s+\w+\s*(?::|=\s*(?:async\b|function\b|\(|<|\w+\s*=>)))/m;

/** Looks at files by importing them in a worker and, where there may be plain functions, by reading their types. */
export async function describeFiles(
  files: readonly string[],
  { runnerFor, describeTypes }: DescribeOptions,
): Promise<readonly DescribedFile[]> {
  const texts = new SourceTexts();
  const scripts = files.filter((file) => !file.endsWith(".py"));
  // Before they are imported: what changes from here on is another change.
  await Promise.all(files.map((file) => texts.read(file)));
  const [reports, typed] = await Promise.all([
    Promise.all(files.map((file) => importReport(file, runnerFor(file)))),
    withFunctions(scripts, texts).then((candidates) => typesOf(candidates, describeTypes)),
  ]);
  return Promise.all(files.map((file, index) => merge({ file, texts }, reports[index], typed.get(file))));
}

type Imported = { readonly report: FileReport } | { readonly problem: HandlerProblem };

async function importReport(file: string, runner: Runner): Promise<Imported> {
  try {
    const report = await runner.run({ job: { op: "describe", file } });
    if (isReport(report)) return { report: outside(report) };
    return { problem: { file, message: "the worker described it in a way that nobody understands" } };
  } catch (thrown) {
    return { problem: { file, message: thrown instanceof Error ? thrown.message : String(thrown) } };
  }
}

/** A worker in a sandbox knows its files by other paths. */
function outside(report: FileReport): FileReport {
  return {
    ...report,
    problems: report.problems.map((problem) => ({ ...problem, file: toOutside(problem.file) })),
    ...(report.dependencies !== undefined && { dependencies: report.dependencies.map(toOutside) }),
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
    const message = `its types could not be read: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
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
  const report = reportOf(imported);
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
  };
}

function reportOf(imported: Imported | undefined): FileReport {
  if (imported !== undefined && "report" in imported) return imported.report;
  return { definitions: [], problems: imported === undefined ? [] : [imported.problem], isBroken: true };
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
