import type { FileMatch } from "../../contract/guest.ts";
import { constants, createReadStream, openSync } from "node:fs";
import { SHOWN_CHARS_MAX } from "./search-engine.ts";
import { looksBinary } from "./text-detection.ts";

/** Only the first part of a longer line is searched, and less is shown. */
const LINE_CHARS_MAX = 65_536;

interface LineSearchOptions {
  readonly path: string;
  readonly place: string | Buffer;
  readonly pattern: RegExp;
  readonly contextLines: number;
  readonly maxMatches: number;
}

/** Searches one file in chunks. Binary files have no matches. */
export async function searchLines(options: LineSearchOptions): Promise<FileMatch[]> {
  const search = new LineSearch(options);
  const decoder = new TextDecoder("utf-8");
  // `O_NOFOLLOW`: a link that replaces the file is not followed. `O_NONBLOCK`: opening a pipe does not block.
  const fd = openSync(options.place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const stream = createReadStream("", { fd, highWaterMark: 262_144 });
  let rest = "";
  let isFirst = true;
  for await (const chunk of stream) {
    if (!(chunk instanceof Buffer)) continue;
    if (isFirst && looksBinary(chunk)) break;
    isFirst = false;
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = (lines.pop() ?? "").slice(0, LINE_CHARS_MAX);
    for (const line of lines) search.push(line);
    if (search.isDone) break;
  }
  stream.destroy();
  if (!search.isDone && rest !== "") search.push(rest);
  return search.matches;
}

class LineSearch {
  readonly matches: (FileMatch & { after: string[] })[] = [];
  readonly #options: LineSearchOptions;
  readonly #before: string[] = [];
  #line = 0;

  constructor(options: LineSearchOptions) {
    this.#options = options;
  }

  get isDone(): boolean {
    const { maxMatches, contextLines } = this.#options;
    const last = this.matches.at(-1);
    return this.matches.length >= maxMatches && (last === undefined || this.#line >= last.line + contextLines);
  }

  push(line: string): void {
    const { path, pattern, contextLines, maxMatches } = this.#options;
    this.#line += 1;
    const searched = line.slice(0, LINE_CHARS_MAX).replace(/\r$/u, "");
    const text = searched.slice(0, SHOWN_CHARS_MAX);
    for (let index = this.matches.length - 1; index >= 0; index -= 1) {
      const match = this.matches[index];
      if (match === undefined || match.line + contextLines < this.#line) break;
      match.after.push(text);
    }
    if (this.matches.length < maxMatches && pattern.test(searched)) {
      this.matches.push({ path, line: this.#line, text, before: [...this.#before], after: [] });
    }
    this.#before.push(text);
    if (this.#before.length > contextLines) this.#before.shift();
  }
}
