import { paint, withoutTerminalControls } from "./text.ts";

const CONTEXT_LINES = 2;

/** One change in the middle of a text: what is the same before and after it is left out, but for a few lines. */
export function lineDiff(before: string, after: string, color: boolean): string {
  const [old, fresh] = [toLines(before), toLines(after)];
  let head = 0;
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head += 1;
  let tail = 0;
  const most = Math.min(old.length, fresh.length) - head;
  while (tail < most && old.at(-1 - tail) === fresh.at(-1 - tail)) tail += 1;
  const shown = (lines: readonly string[], mark: string): string[] => lines.map((line) => `${mark} ${line}`);
  return [
    ...shown(old.slice(Math.max(0, head - CONTEXT_LINES), head), " "),
    ...shown(old.slice(head, old.length - tail), "-").map((line) => paint(line, "red", color)),
    ...shown(fresh.slice(head, fresh.length - tail), "+").map((line) => paint(line, "green", color)),
    ...shown(fresh.slice(fresh.length - tail, fresh.length - tail + CONTEXT_LINES), " "),
  ]
    .map((line) => `${line}\n`)
    .join("");
}

function toLines(text: string): readonly string[] {
  const lines = withoutTerminalControls(text.replaceAll("\r\n", "\n")).split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}
