import { paint, toLine, displayWidth } from "./text.ts";

export interface TableOptions {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly width: number;
  readonly color: boolean;
}

const GAP = 2;
const MIN_LAST_WIDTH = 12;

/** Renders a table. On a narrow terminal the last column shrinks first, then the widest of the others. */
export function renderTable({ columns, rows, width, color }: TableOptions): string {
  const cells = [columns, ...rows].map((row) =>
    columns.map((_, index) => toLine(row[index] ?? "", Number.POSITIVE_INFINITY)),
  );
  const widths = fitWidths(
    columns.map((_, index) => Math.max(...cells.map((row) => displayWidth(row[index] ?? "")))),
    width,
  );
  const lines = cells.map((row, rowIndex) => {
    const line = row
      .map((cell, index) => pad(toLine(cell, widths[index] ?? 0), widths[index] ?? 0))
      .join(" ".repeat(GAP));
    return paint(line.trimEnd(), "bold", color && rowIndex === 0);
  });
  return `${lines.join("\n")}\n`;
}

function fitWidths(natural: readonly number[], width: number): number[] {
  const widths = [...natural];
  const last = widths.length - 1;
  let excess = widths.reduce((sum, each) => sum + each, 0) + GAP * last - width;
  if (excess <= 0) return widths;
  const taken = Math.min(excess, Math.max(0, (widths[last] ?? 0) - MIN_LAST_WIDTH));
  widths[last] = (widths[last] ?? 0) - taken;
  excess -= taken;
  while (excess > 0) {
    const widest = widths.indexOf(Math.max(...widths));
    if ((widths[widest] ?? 0) <= 1) return widths;
    widths[widest] = (widths[widest] ?? 0) - 1;
    excess -= 1;
  }
  return widths;
}

function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - displayWidth(text)));
}
