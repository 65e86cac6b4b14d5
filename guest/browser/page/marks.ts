/** Words that snapshots write in brackets. */
const MARKS = [
  String.raw`ref[\W_]*\d`,
  String.raw`hidden(?!\w)`,
  String.raw`image\W*[:\]]`,
  "the page has",
  "this frame",
  "too many frames",
];
/** Invisible characters may be between letters. */
const spread = (words: string): string => words.replaceAll(/(?<!\\)[a-z](?=[a-z])/g, String.raw`$&\p{DI}*`);
const FORGED = new RegExp(String.raw`[[(［（](?=[\s\p{DI}\\]*(?:${MARKS.map(spread).join("|")}))`, "giu");

/** Escapes page text that looks like a mark, by a backslash after its bracket. */
export function escapeMarks(text: string): string {
  return text.replaceAll(FORGED, "$&\\");
}

/** Quotes a text; quotation marks and backslashes in it are escaped. */
export function quote(text: string): string {
  return `"${escapeMarks(text.replaceAll(/["\\]/g, String.raw`\$&`))}"`;
}

/** Whether a text is part of an escaped text, also of a truncated one. */
export function saysEscaped(escaped: string, text: string): boolean {
  return escaped.replaceAll("\\", "").includes(text.replaceAll("\\", ""));
}

/** Wraps a mark in control characters until its line is complete, to tell it from page text. */
export function asMark(text: string): string {
  return `\u0001${text}\u0002`;
}

/** Unwraps the marks of a complete line and escapes its page text, which has no control characters. */
export function finishMarks(line: string): string {
  return line
    .split(/\u0001([^\u0002]*)\u0002/)
    .map((part, index) => (index % 2 === 1 ? part : escapeMarks(part)))
    .join("");
}

/** Replaces white space, line breaks and control characters by single spaces. */
export function withoutControls(text: string): string {
  return text.replaceAll(/[\s\p{Cc}\u200b\u00ad]+/gu, " ");
}
