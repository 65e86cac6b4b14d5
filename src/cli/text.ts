import { withoutControls } from "../telemetry/plain-fields.ts";

const STYLES = { bold: "1", dim: "2", red: "31", green: "32", yellow: "33" } as const;

export type Style = keyof typeof STYLES;

export function paint(text: string, style: Style, isWanted: boolean): string {
  return isWanted ? `\u001b[${STYLES[style]}m${text}\u001b[0m` : text;
}

/** Replaces terminal control characters. Line breaks and tabs are kept. */
export function withoutTerminalControls(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    "\ufffd",
  );
}

/** JSON for people and programs. Terminal control characters are escaped, so the parsed value stays the same. */
export function jsonText(value: unknown): string {
  const lines = (JSON.stringify(value, null, 2) ?? "null").split("\n");
  return `${lines.map(withoutControls).join("\n")}\n`;
}

/** One line of at most `width` columns. Cut text ends with "…". */
export function toLine(text: string, width: number): string {
  return cutToWidth(withoutTerminalControls(text).replace(/\s+/g, " ").trim(), width);
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

const WIDE =
  /\p{Emoji_Presentation}|\ufe0f|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u;
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;

/** The number of terminal columns of the text. East Asian wide characters and emoji take two. */
export function displayWidth(text: string): number {
  // Almost all cells are plain ASCII, and segmentation is slow.
  if (/^[\u0020-\u007e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += graphemeWidth(segment);
  return width;
}

/** The text, or the part of it that fits, followed by "…". */
export function cutToWidth(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let cut = "";
  let used = 1;
  for (const { segment } of graphemes.segment(text)) {
    used += graphemeWidth(segment);
    if (used > width) break;
    cut += segment;
  }
  return width < 1 ? "" : `${cut}…`;
}

function graphemeWidth(grapheme: string): number {
  if (INVISIBLE.test(grapheme)) return 0;
  // A combining mark after a space does not make the space wide.
  if (grapheme.startsWith(" ")) return 1;
  return WIDE.test(grapheme) ? 2 : 1;
}
