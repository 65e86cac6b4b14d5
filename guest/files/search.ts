import type { FileMatch, GuestParams, GuestResult } from "../../contract/guest.ts";
import { lstatSync } from "node:fs";
import { basename, dirname } from "node:path";
import { Failure, fileFailure } from "../failure.ts";
import type { OpenFolder, Workspace } from "../paths.ts";
import { compileGlob } from "./glob.ts";
import { canRipgrep, ripgrepSearch } from "./ripgrep-search.ts";
import { type SearchEngine, type SearchPlan, searchInThread } from "./search-engine.ts";

const SEARCH_MS_MAX = 20_000;
/** Of all matches together, far below the limit of a frame. */
const RESULT_CHARS_MAX = 2_000_000;

export interface SearchOptions {
  readonly workspace: Workspace;
  /** Path of ripgrep, if it is installed. */
  readonly ripgrep: string | undefined;
}

export async function searchFiles(
  options: SearchOptions,
  params: GuestParams["file.search"],
  signal: AbortSignal,
): Promise<GuestResult<"file.search">> {
  const { workspace, ripgrep } = options;
  if (params.glob !== undefined) compileGlob(params.glob);
  const { folder, onlyFile } = openPlaceOf(workspace, params.path);
  try {
    const plan = planOf(params, { folder: folder.path, prefix: prefixOf(workspace, folder.absolute), onlyFile });
    // The guest's own search for a single file: ripgrep would follow a link that replaces it.
    const isForRipgrep = onlyFile === undefined && canRipgrep(plan);
    const engine = ripgrep !== undefined && isForRipgrep ? ripgrepSearch(ripgrep) : searchInThread;
    return await collect(engine, plan, signal);
  } finally {
    folder.close();
  }
}

interface SearchPlace {
  readonly folder: string;
  readonly prefix: string;
  readonly onlyFile: string | undefined;
}

function planOf(params: GuestParams["file.search"], { folder, prefix, onlyFile }: SearchPlace): SearchPlan {
  return {
    folder,
    prefix,
    ...(onlyFile === undefined ? {} : { onlyFile }),
    ...(params.glob === undefined ? {} : { glob: params.glob }),
    // A hidden file that is named explicitly is searched.
    includeHidden: params.includeHidden || /(?:^|\/)\./u.test(params.glob ?? ""),
    pattern: compilePattern(params),
    ...(params.isRegex ? {} : { plainText: params.pattern }),
    contextLines: params.contextLines,
    maxMatches: params.maxMatches,
  };
}

async function collect(
  engine: SearchEngine,
  plan: SearchPlan,
  signal: AbortSignal,
): Promise<GuestResult<"file.search">> {
  const enough = new AbortController();
  const late = AbortSignal.timeout(SEARCH_MS_MAX);
  const matches: FileMatch[] = [];
  let filesSearched = 0;
  let chars = 0;
  const onFile = (found: readonly FileMatch[]): void => {
    filesSearched += 1;
    for (const match of found) {
      matches.push(match);
      chars += match.text.length + [...match.before, ...match.after].reduce((sum, line) => sum + line.length, 0);
    }
    if (matches.length > plan.maxMatches || chars > RESULT_CHARS_MAX) enough.abort();
  };
  const onSearched = (fileCount: number): void => {
    filesSearched = fileCount;
  };
  await engine(plan, { onFile, onSearched }, AbortSignal.any([signal, late, enough.signal]));
  signal.throwIfAborted();
  if (late.aborted) throw tooSlow(plan, filesSearched);
  const shown = matches.slice(0, plan.maxMatches);
  return enough.signal.aborted
    ? { matches: shown, isTruncated: true }
    : { matches: shown, filesSearched, isTruncated: false };
}

function compilePattern({ pattern, isRegex, ignoreCase }: GuestParams["file.search"]): RegExp {
  if (pattern === "") throw new Failure("bad_pattern", "the pattern is empty", "say what to search for");
  const flags = ignoreCase ? "i" : "";
  if (!isRegex) return new RegExp(pattern.replaceAll(/[\\^$.*+?()[\]{}|/-]/gu, String.raw`\$&`), flags);
  try {
    return new RegExp(pattern, flags);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "it is no regular expression";
    throw new Failure("bad_pattern", reason, "repair the expression, or search for plain text with regex: false");
  }
}

function openPlaceOf(workspace: Workspace, path: string): { folder: OpenFolder; onlyFile: string | undefined } {
  const absolute = workspace.resolve(path);
  if (isFolderAt(absolute, path)) return { folder: workspace.openFolder(absolute), onlyFile: undefined };
  return { folder: workspace.openFolder(dirname(absolute)), onlyFile: basename(absolute) };
}

function isFolderAt(absolute: string, asked: string): boolean {
  try {
    return lstatSync(absolute).isDirectory();
  } catch (error) {
    throw fileFailure(error, asked);
  }
}

function prefixOf(workspace: Workspace, folder: string): string {
  const shown = workspace.display(folder);
  return shown === "." ? "" : `${shown}/`;
}

function tooSlow(plan: SearchPlan, filesSearched: number): Failure {
  const message = `the search took longer than ${SEARCH_MS_MAX / 1000} s (${filesSearched} files were done)`;
  const hint =
    plan.plainText === undefined
      ? "make the expression simpler (nested repeats such as (a+)+ take forever), or narrow it with path and glob"
      : "narrow it with path and glob";
  return new Failure("bad_pattern", message, hint);
}
