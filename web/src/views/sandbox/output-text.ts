import type { Activity } from "../../../../src/operator/activity-log.ts";
import { timeOf, visibleText } from "../../parts/format.ts";
import { PrintedText } from "./printed-text.ts";

/** The background of lines that are ours. Nothing that is printed has one. */
const OWN = "\u001b[0m\u001b[100m";

/** Pieces of output with a line between calls that says whose they are. Red for stderr; what is printed has colours of its own. */
export class OutputText {
  #call: string | undefined;
  #source = "";
  #printed = new PrintedText();
  #isLineOpen = false;

  next(entry: Activity): string {
    if (entry.kind === "state") return this.#own(`— ${entry.text ?? ""}`, entry.time);
    if (entry.kind === "file" || entry.kind === "browser")
      return this.#own(`· ${entry.text ?? entry.tool ?? entry.kind}`, entry.time);
    // Calls of one trace have one name: each of them says whose it is when it begins.
    const head = entry.call === this.#call && entry.by === undefined ? "" : this.#head(entry);
    return head + this.#print(entry);
  }

  #print({ call, stream, text: piece = "" }: Activity): string {
    const source = `${call} ${stream}`;
    if (source !== this.#source) this.#printed = new PrintedText();
    this.#source = source;
    const text = this.#printed.next(piece);
    if (text === "") return "";
    this.#isLineOpen = !text.endsWith("\n");
    return stream === "stderr" ? `\u001b[31m${text}\u001b[39m` : text;
  }

  #head(entry: Activity): string {
    this.#call = entry.call;
    return this.#own(`▸ ${entry.tool ?? entry.kind}${entry.by === undefined ? "" : ` by ${entry.by}`}`, entry.time);
  }

  #own(words: string, time: string): string {
    const lead = this.#isLineOpen ? "\n" : "";
    this.#isLineOpen = false;
    // Whatever begins now is not the rest of what was printed before.
    this.#source = "";
    return `${lead}${OWN}${timeOf(time)} ${oneLine(words)}\u001b[0m\n`;
  }
}

export interface OutputLine {
  readonly text: string;
  readonly isOwn: boolean;
}

/** For people who read with a screen reader, or copy. */
export function plainLines(text: string): readonly OutputLine[] {
  return text.split("\n").map((line) => ({ text: withoutEscapes(line), isOwn: line.startsWith(OWN) }));
}

/** A path may hold a line of its own. */
function oneLine(words: string): string {
  return visibleText(words.replaceAll(/[\n\t]/g, " "));
}

/** Of a line that was written over, the last is left, as on a screen. */
function withoutEscapes(line: string): string {
  const text = line.replaceAll(/\u001b\[[0-9;:]*m/g, "").replace(/\r+$/, "");
  return visibleText(text.slice(text.lastIndexOf("\r") + 1));
}
