import { Failure } from "../../failure.ts";

const LINE_MAX = 2000;
const KEPT = 4;

export interface SnapshotLine {
  readonly text: string;
  /** What stands in the text by its ref, in full. */
  readonly elements: readonly string[];
}

export interface SnapshotPart {
  readonly text: string;
  readonly elements: string;
  readonly cursor?: string;
  readonly totalChars: number;
}

/** Snapshots that are read in parts: the later parts are of the same moment as the first. */
export class SnapshotPages {
  readonly #snapshots = new Map<number, readonly SnapshotLine[]>();
  #last = 0;

  add(lines: readonly SnapshotLine[]): string {
    this.#last += 1;
    this.#snapshots.set(this.#last, lines.flatMap(splitLine));
    this.#snapshots.delete(this.#last - KEPT);
    return `${this.#last}:0`;
  }

  /** What fits, from the cursor on; at least one line. */
  read(cursor: string, maxChars: number): SnapshotPart {
    const [, snapshot, from] = /^(\d+):(\d+)$/.exec(cursor) ?? [];
    const lines = this.#snapshots.get(Number(snapshot));
    if (lines === undefined || from === undefined) throw unknownCursor();
    const start = Number(from);
    let end = start;
    for (let used = 0; end < lines.length; end += 1) {
      const line = lines[end];
      used += line === undefined ? 0 : sizeOf(line);
      if (used > maxChars && end > start) break;
    }
    const shown = lines.slice(start, end);
    return {
      text: shown.map(({ text }) => text).join("\n"),
      elements: shown.flatMap(({ elements }) => elements).join("\n"),
      ...(end < lines.length && { cursor: `${snapshot}:${end}` }),
      totalChars: lines.reduce((sum, line) => sum + sizeOf(line), 0),
    };
  }
}

/** As it will be in JSON, line ends included. */
function sizeOf({ text, elements }: SnapshotLine): number {
  return [text, ...elements].reduce((sum, part) => sum + JSON.stringify(part).length, 0);
}

/** A line that is longer than a part would never be seen whole. */
function splitLine(line: SnapshotLine): SnapshotLine[] {
  if (line.text.length <= LINE_MAX) return [line];
  const pieces: SnapshotLine[] = [];
  for (let rest = line.text; rest !== "";) {
    const space = rest.length > LINE_MAX ? rest.lastIndexOf(" ", LINE_MAX) : rest.length;
    const text = rest.slice(0, space > 0 ? space : LINE_MAX);
    const elements = line.elements.filter((element) => text.includes(element.slice(0, element.indexOf("]") + 1)));
    pieces.push({ text, elements });
    rest = rest.slice(text.length).trimStart();
  }
  return pieces;
}

function unknownCursor(): Failure {
  return new Failure("unknown_cursor", "there is no such cursor any more", "call browser_snapshot without cursor");
}
