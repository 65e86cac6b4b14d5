import type { FileMatch } from "../../contract/guest.ts";
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { isRecord, readLines } from "../processes/line-reader.ts";
import { shownName } from "./walk.ts";
import {
  SHOWN_CHARS_MAX,
  type SearchEngine,
  type SearchPlan,
  type SearchProgress,
  searchInThread,
} from "./search-engine.ts";

/** ripgrep prints whole lines, also of minified files; beyond this size the search stops. */
const EVENT_BYTES_MAX = 16 * 1024 * 1024;

const ERROR_EXIT_CODE = 2;

/** ripgrep has neither look-around nor back references, and reads a leading `!` in a glob as negation. */
export function canRipgrep({ pattern, plainText, glob }: SearchPlan): boolean {
  const isPortable = plainText !== undefined || !/\(\?<?[=!]|\\[1-9k]|\[[^\]]*\[/u.test(pattern.source);
  return isPortable && glob?.startsWith("!") !== true;
}

export function ripgrepSearch(program: string): SearchEngine {
  return async (plan, progress, signal) => {
    const child = start(program, { args: ripgrepArgs(plan), folder: plan.folder });
    // Its output does not count files without a match.
    const lister = start(program, { args: ["--files", "--null", ...selectionArgs(plan)], folder: plan.folder });
    const kill = (): void => {
      child.kill("SIGKILL");
      lister.kill("SIGKILL");
    };
    signal.addEventListener("abort", kill);
    const files = new FileCollector(plan, progress);
    readLines(child.stdout, { onLine: (line) => files.push(line), maxLineBytes: EVENT_BYTES_MAX });
    const [exitCode, fileCount] = await Promise.all([exitCodeOf(child), countNames(lister)]);
    signal.removeEventListener("abort", kill);
    // ripgrep rejects the expression or cannot run: the guest's own search reports the error.
    if (exitCode === ERROR_EXIT_CODE && files.isEmpty) await searchInThread(plan, progress, signal);
    else progress.onSearched(fileCount);
  };
}

type Ripgrep = ChildProcessByStdio<null, Readable, null>;

function start(program: string, { args, folder }: { args: string[]; folder: string }): Ripgrep {
  return spawn(program, args, { cwd: folder, env: {}, stdio: ["ignore", "pipe", "ignore"] });
}

async function exitCodeOf(child: Ripgrep): Promise<number> {
  return await once(child, "close").then(
    ([code]) => Number(code),
    () => ERROR_EXIT_CODE,
  );
}

async function countNames(lister: Ripgrep): Promise<number> {
  let count = 0;
  lister.stdout.on("data", (chunk: Buffer) => {
    for (let at = chunk.indexOf(0); at !== -1; at = chunk.indexOf(0, at + 1)) count += 1;
  });
  await exitCodeOf(lister);
  return count;
}

function ripgrepArgs(plan: SearchPlan): string[] {
  const { plainText, pattern, contextLines, maxMatches } = plan;
  return [
    "--json",
    "--crlf",
    "--sort=path",
    `--context=${contextLines}`,
    // One more than requested shows that there are more.
    `--max-count=${maxMatches + 1}`,
    ...(pattern.ignoreCase ? ["--ignore-case"] : ["--case-sensitive"]),
    ...(plainText === undefined ? [`--regexp=${pattern.source}`] : ["--fixed-strings", `--regexp=${plainText}`]),
    ...selectionArgs(plan),
  ];
}

/** The files to search: the same for the search and for the count. */
function selectionArgs({ includeHidden, glob, onlyFile }: SearchPlan): string[] {
  return [
    "--no-config",
    "--no-ignore",
    "--no-messages",
    ...(includeHidden ? ["--hidden"] : []),
    ...(glob === undefined ? [] : [`--glob=${glob}`]),
    "--",
    onlyFile === undefined ? "./" : `./${onlyFile}`,
  ];
}

interface Line {
  readonly number: number;
  readonly text: string;
  readonly isMatch: boolean;
}

/** Combines the lines of one file into matches. */
class FileCollector {
  readonly #plan: SearchPlan;
  readonly #progress: SearchProgress;
  #lines: Line[] = [];
  #fileCount = 0;

  constructor(plan: SearchPlan, progress: SearchProgress) {
    this.#plan = plan;
    this.#progress = progress;
  }

  get isEmpty(): boolean {
    return this.#fileCount === 0;
  }

  push(json: string): void {
    const event: unknown = JSON.parse(json);
    if (!isRecord(event) || !isRecord(event["data"])) return;
    const { type, data } = event;
    if (type === "begin") {
      this.#lines = [];
      this.#fileCount += 1;
    }
    if (type === "match" || type === "context") this.#lines.push(toLine(data, type === "match"));
    // A file that turns out to be binary has no matches.
    if (type === "end")
      this.#progress.onFile(data["binary_offset"] === null ? this.#matches(pathOf(data["path"])) : []);
  }

  #matches(path: string): FileMatch[] {
    const { contextLines, prefix } = this.#plan;
    return this.#lines.flatMap((line, index) => {
      if (!line.isMatch) return [];
      const near = (other: Line) => Math.abs(other.number - line.number) <= contextLines;
      const before = this.#lines.slice(Math.max(0, index - contextLines), index).filter(near);
      const after = this.#lines.slice(index + 1, index + 1 + contextLines).filter(near);
      const shown = prefix + path.replace(/^\.\//u, "");
      return [
        {
          path: shown,
          line: line.number,
          text: line.text,
          before: before.map(({ text }) => text),
          after: after.map(({ text }) => text),
        },
      ];
    });
  }
}

function toLine(data: Record<string, unknown>, isMatch: boolean): Line {
  const text = textOf(data["lines"])
    .replace(/\r?\n$/u, "")
    .slice(0, SHOWN_CHARS_MAX);
  return { number: Number(data["line_number"]), text, isMatch };
}

function pathOf(value: unknown): string {
  return isRecord(value) && typeof value["bytes"] === "string"
    ? shownName(Buffer.from(value["bytes"], "base64"))
    : textOf(value);
}

/** Text, or bytes when it is not valid UTF-8. */
function textOf(value: unknown): string {
  if (!isRecord(value)) return "";
  const { text, bytes } = value;
  return typeof text === "string" ? text : Buffer.from(String(bytes), "base64").toString("utf8");
}
