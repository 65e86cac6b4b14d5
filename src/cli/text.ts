import { withoutControls } from "../telemetry/without-controls.ts";
import { cutToWidth } from "./display-width.ts";

const STYLES = { bold: "1", dim: "2", red: "31", green: "32", yellow: "33" } as const;

export type Style = keyof typeof STYLES;

export function paint(text: string, style: Style, isWanted: boolean): string {
  return isWanted ? `\u001b[${STYLES[style]}m${text}\u001b[0m` : text;
}

/** Takes out what would steer a terminal; line breaks and tabs stay. */
export function withoutTerminalControls(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    "\ufffd",
  );
}

/** JSON for people and programs: what would steer a terminal is escaped, and the value stays the same. */
export function jsonText(value: unknown): string {
  const lines = (JSON.stringify(value, null, 2) ?? "null").split("\n");
  return `${lines.map(withoutControls).join("\n")}\n`;
}

/** One line of at most `width` columns; what is cut is marked. */
export function toLine(text: string, width: number): string {
  return cutToWidth(withoutTerminalControls(text).replace(/\s+/g, " ").trim(), width);
}
