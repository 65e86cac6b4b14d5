import type { ReportLine } from "../page-report.ts";
import type { Layout } from "./frame-walk.ts";
import { asMark, finishMarks, withoutControls } from "./marks.ts";

const PREFIXES: Readonly<Record<string, string>> = {
  item: "- ",
  h1: "# ",
  h2: "## ",
  h3: "### ",
  h4: "#### ",
  h5: "##### ",
  h6: "###### ",
};

/** Builds lines from texts and marks as a page displays them: a block is a line, and the cells of a table row share one. */
export class LineBuilder {
  readonly #lines: ReportLine[] = [];
  #text = "";
  #refs: number[] = [];
  #prefix = "";
  #indent = "";
  /** A table cell is open: its content stays in the row. */
  #cells = 0;
  /** The open cells of nested tables. */
  readonly #outerCells: number[] = [];
  /** The next text is in another cell than the last. */
  #isNewCell = false;

  open(layout: Layout): void {
    if (layout === "inline") return;
    if (layout === "cell") {
      this.#cells += 1;
      this.#isNewCell = true;
      return;
    }
    if (layout === "table") {
      this.#flush();
      this.#outerCells.push(this.#cells);
      this.#cells = 0;
      return;
    }
    this.breakLine();
    if (this.#cells === 0) this.#prefix = PREFIXES[layout] ?? this.#prefix;
  }

  close(layout: Layout): void {
    if (layout === "inline") return;
    if (layout === "cell") {
      this.#cells -= 1;
      return;
    }
    this.breakLine();
    if (layout === "table") this.#cells = this.#outerCells.pop() ?? 0;
    else if (layout !== "block") this.#prefix = "";
  }

  space(): void {
    if (this.#text !== "" && !this.#text.endsWith(" ")) this.#text += " ";
  }

  add(text: string): void {
    const squeezed = withoutControls(text);
    this.#startCell();
    this.#text += this.#text === "" || this.#text.endsWith(" ") ? squeezed.trimStart() : squeezed;
  }

  /** Preformatted: line breaks and indentation are kept. */
  addPreformatted(text: string): void {
    for (const [index, line] of text.split("\n").entries()) {
      if (index > 0) this.breakLine();
      if (this.#text === "") this.#indent += /^[ \t]*/.exec(line)?.[0].replaceAll("\t", "    ") ?? "";
      this.add(line);
    }
  }

  mark(ref: number): void {
    this.#startCell();
    this.space();
    this.#text += `${asMark(`[ref_${ref}]`)} `;
    this.#refs.push(ref);
  }

  addPicture(name: string): void {
    this.#startCell();
    this.space();
    this.#text += `${asMark("(image:")} ${withoutControls(name)}${asMark(")")} `;
  }

  /** A separate line, after which the frame's lines are inserted. */
  markFrame(ref: number): void {
    const wasInCell = this.#cells;
    this.#flush();
    this.#lines.push({ text: `[ref_${ref}] frame:`, refs: [ref], frame: ref });
    this.#cells = wasInCell;
  }

  breakLine(): void {
    if (this.#cells > 0) this.space();
    else this.#flush();
  }

  finish(): readonly ReportLine[] {
    this.#flush();
    return this.#lines;
  }

  #startCell(): void {
    if (!this.#isNewCell) return;
    this.#isNewCell = false;
    if (this.#text.trim() !== "") this.#text = `${this.#text.trimEnd()} | `;
  }

  #flush(): void {
    const text = finishMarks(this.#text.trim());
    if (text !== "") this.#lines.push({ text: this.#indent + this.#prefix + text, refs: this.#refs });
    this.#indent = "";
    if (text !== "" || this.#refs.length > 0) this.#prefix = "";
    this.#text = "";
    this.#refs = [];
    this.#isNewCell = false;
  }
}
