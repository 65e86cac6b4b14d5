/** A Markdown table. Cells are one line each; a bar inside one does not end it. */
export function toTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.map(toCell).join(" | ")} |`);
  return `${lines.join("\n")}\n`;
}

function toCell(text: string): string {
  return text
    .replaceAll("\\", "\\\\")
    .replaceAll("|", String.raw`\|`)
    .replaceAll(/\s*\n\s*/g, " ");
}
