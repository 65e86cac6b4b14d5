import type { CodeError } from "../../contract/guest.ts";
import { inspect } from "node:util";

/** Stack frames from here on are those of the driver and are not shown. */
export function hideDriverFrames(): void {
  Error.prepareStackTrace = (error, frames) => {
    const driverAt = frames.findIndex((frame) => frame.getFileName() === import.meta.url);
    const own = driverAt === -1 ? frames : frames.slice(0, driverAt);
    const lastOwn = own.findLastIndex((frame) => frame.getFileName()?.startsWith("node:") !== true);
    return [heading(error), ...own.slice(0, lastOwn + 1).map(String)].join("\n    at ");
  };
}

export function describeError(error: unknown): CodeError {
  if (!(error instanceof Error)) {
    const shown = inspect(error);
    return { name: "Error", message: `the code threw ${shown}`, traceback: `Uncaught ${shown}` };
  }
  const { name, message }: { name: unknown; message: unknown } = error;
  return { name: String(name), message: String(message), traceback: inspect(error, { depth: 4 }) };
}

function heading(error: Error): string {
  try {
    return String(error);
  } catch {
    return "Error";
  }
}

/** The position of a syntax error, with its line and a caret. */
export function describeSyntaxError(error: SyntaxError, cell: { code: string; filename: string }): CodeError {
  const message = error.message.replace(/ \(\d+:\d+\)$/u, "");
  const position = parserPosition(error);
  if (position === undefined) return { name: "SyntaxError", message, traceback: `SyntaxError: ${message}` };
  const line = cell.code.split("\n")[position.line - 1] ?? "";
  const caret = `${line.slice(0, position.column).replaceAll(/[^\t]/gu, " ")}^`;
  const traceback = `${cell.filename}:${position.line}:${position.column + 1}\n${line}\n${caret}\nSyntaxError: ${message}`;
  return { name: "SyntaxError", message, traceback };
}

function parserPosition(error: SyntaxError): { line: number; column: number } | undefined {
  const loc: unknown = "loc" in error ? error.loc : undefined;
  if (typeof loc !== "object" || loc === null || !("line" in loc) || !("column" in loc)) return undefined;
  return typeof loc.line === "number" && typeof loc.column === "number"
    ? { line: loc.line, column: loc.column }
    : undefined;
}
