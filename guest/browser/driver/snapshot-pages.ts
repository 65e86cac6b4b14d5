import { Failure } from "../../failure.ts";

const KEPT = 4;
/** A ref is never split. */
const ATOM = /\[ref_\d+\] ?|./gsu;

export interface SnapshotLine {
  readonly text: string;
  /** The full description of the element by its ref. */
  readonly elements: readonly string[];
  /** Prefix of each part of the line, however it is divided. */
  readonly start?: string;
}

export interface SnapshotPart {
  readonly text: string;
  readonly elements: string;
  readonly cursor?: string;
  readonly totalChars: number;
}

/** Snapshots in parts: later parts are of the same moment as the first. */
export class SnapshotPages {
  readonly #snapshots = new Map<number, readonly SnapshotLine[]>();
  #last = 0;

  add(lines: readonly SnapshotLine[]): string {
    this.#last += 1;
    this.#snapshots.set(this.#last, lines);
    this.#snapshots.delete(this.#last - KEPT);
    return `${this.#last}:0`;
  }

  /** As much as fits from the cursor on; at least one word or ref. */
  read(cursor: string, maxChars: number): SnapshotPart {
    const [, snapshot, from, within = "0"] = /^(\d+):(\d+)(?:\.(\d+))?$/.exec(cursor) ?? [];
    const lines = this.#snapshots.get(Number(snapshot));
    if (lines === undefined || from === undefined) throw unknownCursor();
    const { shown, next } = take(lines, { line: Number(from), char: Number(within) }, maxChars);
    return {
      text: shown.map(({ text, start = "" }) => start + text).join("\n"),
      elements: shown.flatMap(({ elements }) => elements).join("\n"),
      ...(next.line < lines.length && { cursor: `${snapshot}:${next.line}${next.char === 0 ? "" : `.${next.char}`}` }),
      totalChars: lines.reduce((sum, line) => sum + sizeOf(line), 0),
    };
  }
}

interface Place {
  readonly line: number;
  /** The offset in the line, when the part before ended within it. */
  readonly char: number;
}

function take(
  lines: readonly SnapshotLine[],
  { line, char }: Place,
  room: number,
): { readonly shown: readonly SnapshotLine[]; readonly next: Place } {
  const shown: SnapshotLine[] = [];
  let left = room;
  for (const [index, whole] of lines.entries()) {
    if (index < line) continue;
    const from = index === line ? char : 0;
    const rest = pieceOf(whole, from);
    left -= sizeOf(rest);
    if (left >= 0) {
      shown.push(rest);
      continue;
    }
    if (shown.length > 0) return { shown, next: { line: index, char: from } };
    const end = from + endOfPiece(rest, room);
    const isWhole = end >= whole.text.length;
    return {
      shown: [pieceOf(whole, from, end)],
      next: isWhole ? { line: index + 1, char: 0 } : { line: index, char: end },
    };
  }
  return { shown, next: { line: lines.length, char: 0 } };
}

/** The size in JSON, including line ends. */
function sizeOf({ text, elements, start = "" }: SnapshotLine): number {
  return [start + text, ...elements].reduce((sum, part) => sum + JSON.stringify(part).length, 0);
}

/** A part of a line, with the elements whose refs it contains. */
function pieceOf(line: SnapshotLine, from: number, to = line.text.length): SnapshotLine {
  if (from === 0 && to === line.text.length) return line;
  const places = placesOf(line);
  const isWithin = (place = 0): boolean => from <= place && place < to;
  return {
    ...line,
    text: line.text.slice(from, to).trimEnd(),
    elements: line.elements.filter((_, index) => isWithin(places[index])),
  };
}

/** The offset of each element's ref in the text, in order. */
function placesOf({ text, elements }: SnapshotLine): number[] {
  let place = 0;
  return elements.map((element) => {
    place = Math.max(place, text.indexOf(element.slice(0, element.indexOf("]") + 1), place));
    return place;
  });
}

/** Where to cut a line that is too long: after a word, or inside a long one. */
function endOfPiece(line: SnapshotLine, room: number): number {
  const sizes = new Map<number, number>();
  for (const [index, place] of placesOf(line).entries()) {
    sizes.set(place, (sizes.get(place) ?? 0) + JSON.stringify(line.elements[index]).length);
  }
  let used = JSON.stringify(line.start ?? "").length;
  let end = 0;
  let wordsEnd = 0;
  let hasWord = false;
  for (const { 0: atom, index } of line.text.matchAll(ATOM)) {
    used += JSON.stringify(atom).length - JSON.stringify("").length + (sizes.get(index) ?? 0);
    if (used > room && hasWord) break;
    end = index + atom.length;
    hasWord ||= atom.trim() !== "";
    if (hasWord && atom.endsWith(" ")) wordsEnd = end;
  }
  return wordsEnd > 0 ? wordsEnd : end;
}

function unknownCursor(): Failure {
  return new Failure("unknown_cursor", "there is no such cursor any more", "call browser_snapshot without cursor");
}
