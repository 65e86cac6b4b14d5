import type { Activity } from "../../../../src/dashboard/activity.ts";
import { timeOf, visibleText } from "../../parts/format.ts";

/** Pieces of output with a line between calls that says whose they are. Red for stderr; what is printed has colours of its own. */
export class OutputText {
  #call: string | undefined;
  #isLineOpen = false;

  next(entry: Activity): string {
    if (entry.kind === "state") return this.#own(`— ${visibleText(entry.text ?? "")}`, entry.time);
    if (entry.kind === "file" || entry.kind === "browser")
      return this.#own(`· ${visibleText(entry.text ?? entry.tool ?? entry.kind)}`, entry.time);
    const head = entry.call === this.#call ? "" : this.#head(entry);
    const text = entry.text ?? "";
    if (text === "") return head;
    this.#isLineOpen = !text.endsWith("\n");
    return head + (entry.stream === "stderr" ? `\u001b[31m${text}\u001b[39m` : text);
  }

  #head(entry: Activity): string {
    this.#call = entry.call;
    const by = entry.by === undefined ? "" : ` by ${visibleText(entry.by)}`;
    return this.#own(`▸ ${visibleText(entry.tool ?? entry.kind)}${by}`, entry.time);
  }

  /** A hostile line cannot look like one of these for long: its colours end here. */
  #own(words: string, time: string): string {
    const lead = this.#isLineOpen ? "\n" : "";
    this.#isLineOpen = false;
    return `${lead}\u001b[0m\u001b[90m${timeOf(time)} ${words}\u001b[0m\n`;
  }
}

/** For people who read with a screen reader, or copy. */
export function withoutEscapes(text: string): string {
  return visibleText(
    text
      .replaceAll(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g, "")
      .replaceAll("\r\n", "\n"),
  );
}
