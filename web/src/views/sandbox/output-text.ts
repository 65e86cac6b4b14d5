import type { Activity } from "../../../../src/operator/activity-log.ts";
import { timeOf, visibleText } from "../../parts/format.ts";
import { PrintedText } from "./printed-text.ts";

/** The background of lines that the page itself adds. Printed output cannot have a background. */
const OWN = "\u001b[0m\u001b[100m";

/**
 * Converts activity to terminal text, with a head line for each call. stderr is red; printed output keeps its own
 * colours.
 */
export class OutputText {
  #call: string | undefined;
  #source = "";
  #printed = new PrintedText();
  #isLineOpen = false;

  next(entry: Activity): string {
    if (entry.kind === "state") return this.#own(`— ${entry.text ?? ""}`, entry.time);
    if (entry.kind === "file" || entry.kind === "browser")
      return this.#own(`· ${entry.text ?? entry.tool ?? entry.kind}`, entry.time);
    // Calls of one trace share an id, so each entry with `by` begins a new call.
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
    // What follows does not continue the output before.
    this.#source = "";
    return `${lead}${OWN}${timeOf(time)} ${oneLine(words)}\u001b[0m\n`;
  }
}

export interface OutputLine {
  readonly text: string;
  readonly isOwn: boolean;
}

/** The output as plain text, for screen readers and for copying. */
export function plainLines(text: string): readonly OutputLine[] {
  return text.split("\n").map((line) => ({ text: withoutEscapes(line), isOwn: line.startsWith(OWN) }));
}

/** A path may contain a line break. */
function oneLine(words: string): string {
  return visibleText(words.replaceAll(/[\n\t]/g, " "));
}

/** Of a line that was overwritten with carriage returns, only the last text is kept, as on a terminal. */
function withoutEscapes(line: string): string {
  const text = line.replaceAll(/\u001b\[[0-9;:]*m/g, "").replace(/\r+$/, "");
  return visibleText(text.slice(text.lastIndexOf("\r") + 1));
}
