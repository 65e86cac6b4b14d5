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

/** Puts texts and marks together into lines as a page shows them: a block is a line, cells of a row stand in one. */
export class LineBuilder {
  readonly #lines: ReportLine[] = [];
  #text = "";
  #refs: number[] = [];
  #prefix = "";
  #indent = "";
  /** A cell is open: what is in it stays in its row. */
  #cells = 0;
  /** Tables in cells of tables: the cells that are open around each. */
  readonly #outerCells: number[] = [];
  /** What comes next is in another cell than what came before. */
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

  /** Lines and what they are set in by mean something: it may be a program. */
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

  /** A line of its own, after which the frame's lines go. */
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
