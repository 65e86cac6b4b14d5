/** What snapshots themselves write between brackets. */
const MARKS = [
  String.raw`ref[\W_]*\d`,
  String.raw`hidden(?!\w)`,
  String.raw`image\W*[:\]]`,
  "the page has",
  "this frame",
  "too many frames",
];
/** Characters that nobody sees may stand between letters. */
const spread = (words: string): string => words.replaceAll(/(?<!\\)[a-z](?=[a-z])/g, String.raw`$&\p{DI}*`);
const FORGED = new RegExp(String.raw`[[(［（](?=[\s\p{DI}\\]*(?:${MARKS.map(spread).join("|")}))`, "giu");

/** A backslash after the bracket of whatever looks like a mark of ours: marks themselves have none there. */
export function escapeMarks(text: string): string {
  return text.replaceAll(FORGED, "$&\\");
}

/** Between quotation marks that only end where they should: others, and backslashes, have a backslash before them. */
export function quote(text: string): string {
  return `"${escapeMarks(text.replaceAll(/["\\]/g, String.raw`\$&`))}"`;
}

/** Whether a text is part of what was escaped, also when it was cut off in the middle. */
export function saysEscaped(escaped: string, text: string): boolean {
  return escaped.replaceAll("\\", "").includes(text.replaceAll("\\", ""));
}

/** Every mark of ours until a line is complete, when it has been told apart from what the page says. */
export function asMark(text: string): string {
  return `\u0001${text}\u0002`;
}

/** The page's words have no control characters. */
export function finishMarks(line: string): string {
  return line
    .split(/\u0001([^\u0002]*)\u0002/)
    .map((part, index) => (index % 2 === 1 ? part : escapeMarks(part)))
    .join("");
}

/** Nothing of it ends a line. */
export function withoutControls(text: string): string {
  return text.replaceAll(/[\s\p{Cc}\u200b\u00ad]+/gu, " ");
}
