import { withoutControls } from "./without-controls.ts";
import type { LoggerLevel } from "./logger.ts";

export interface PrettyLine {
  readonly time: string;
  readonly level: LoggerLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly color: boolean;
}

const COLOR: Record<LoggerLevel, string> = { debug: "90", info: "36", warning: "33", error: "31" };

/** One line for a person: `10:15:02.114 info    listening  url=http://localhost:8080`. A stack follows on lines of its own, indented. */
export function formatPretty({ time, level, message, fields, color }: PrettyLine): string {
  const paint = (code: string, text: string): string => (color ? `\u001b[${code}m${text}\u001b[0m` : text);
  const parts = [paint("90", time.slice(11, 23)), paint(COLOR[level], level.padEnd(7)), withoutControls(message)];
  const stacks: string[] = [];
  for (const [name, value] of Object.entries(fields)) {
    parts.push(`${paint("90", `${withoutControls(name)}=`)}${toText(value)}`);
    if (isError(value)) stacks.push(...indentStack(value.stack));
  }
  return [parts.join(" "), ...stacks].join("\n");
}

function toText(value: unknown): string {
  if (typeof value === "string") return /^[\w./:@*-]+$/.test(value) ? value : withoutControls(JSON.stringify(value));
  if (isError(value)) return withoutControls(`${value.type}: ${value.message}`);
  return withoutControls(JSON.stringify(value));
}

interface PlainError {
  readonly type: string;
  readonly message: string;
  readonly stack: string;
}

function isError(value: unknown): value is PlainError {
  if (typeof value !== "object" || value === null) return false;
  return ["type", "message", "stack"].every((name) => typeof Reflect.get(value, name) === "string");
}

function indentStack(stack: string): string[] {
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
  return frames.map((line) => `    ${withoutControls(line.trim())}`);
}
