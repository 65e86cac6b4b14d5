const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const ALL_CONTROLS = new RegExp(CONTROLS, "g");

/**
 * Text from outside must not start a line of its own, move the cursor, reorder what stands there or colour the terminal.
 * JSON stays what it was: some programs take for the end of a line what JSON has no need to escape, Node 24 among them.
 */
export function withoutControls(text: string): string {
  // Most texts have none, and looking is cheaper than replacing.
  if (!CONTROLS.test(text)) return text;
  return text.replace(ALL_CONTROLS, (char) => `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`);
}
