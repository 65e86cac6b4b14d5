import type { LoggerLevel } from "./logger.ts";

const MAX_WAITING_CHARS = 256 * 1024;

/**
 * Lines wait for the end of the turn of the event loop and leave together: one write in place of one for each call.
 * Warnings and errors leave at once, with all that waits: what they announce may be the end of the process.
 */
export function batchLines(sink: (lines: string) => void): (line: string, level: LoggerLevel) => void {
  let waiting = "";
  let isPlanned = false;
  const flush = (): void => {
    if (waiting === "") return;
    const lines = waiting;
    waiting = "";
    sink(lines);
  };
  process.once("exit", flush);
  return (line, level) => {
    waiting += line;
    if (level === "warning" || level === "error" || waiting.length > MAX_WAITING_CHARS) return flush();
    if (isPlanned) return;
    isPlanned = true;
    setImmediate(() => {
      isPlanned = false;
      flush();
    });
  };
}
