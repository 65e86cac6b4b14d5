import type { Duplex, Readable } from "node:stream";
import { boundedLines } from "../../platform/bounded-lines.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { CallJournal } from "./call-journal.ts";

export interface WorkerExit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly reason?: string;
}

/** A worker process that was started, wherever it runs. */
export interface LaunchedWorker {
  readonly stream: Duplex;
  /** What it prints, for the log. */
  readonly outputs: readonly { readonly name: "stdout" | "stderr"; readonly stream: Readable }[];
  readonly exited: Promise<WorkerExit>;
  /** After its end, when nothing of it is left; where that takes longer than the end itself. */
  readonly cleared?: Promise<void>;
  readonly journal?: CallJournal;
  /** Throws for a message that is not to be parsed. */
  readonly assertLine?: (line: string) => void;
  /** Stands before every path inside, where the files are elsewhere. */
  readonly pathPrefix?: string;
  kill(): void;
}

export type LaunchWorker = () => Promise<LaunchedWorker>;

const MAX_LINE_CHARS = 2000;
const MAX_LINES_PER_WINDOW = 200;
const WINDOW_MS = 10_000;
/** Of what comes at once; a log does not take more of them anyway. */
const MAX_LINES_AT_ONCE = 50;

/** Brings what a worker prints to the log, line by line, and not more than a log can bear. */
export function logOutputs({ outputs }: LaunchedWorker, logger: Logger, onLine?: (line: string) => void): void {
  let windowStartedMs = 0;
  let lines = 0;
  const log = (name: string, line: string): void => {
    onLine?.(line);
    const nowMs = performance.now();
    if (nowMs - windowStartedMs > WINDOW_MS) {
      if (lines > MAX_LINES_PER_WINDOW) {
        logger.warning("handlers printed more than the log takes", { dropped_lines: lines - MAX_LINES_PER_WINDOW });
      }
      windowStartedMs = nowMs;
      lines = 0;
    }
    lines += 1;
    if (lines <= MAX_LINES_PER_WINDOW) logger.info("handler says", { from: name, text: line });
  };
  for (const { name, stream } of outputs) {
    stream.on("error", () => undefined);
    boundedLines(stream, {
      maxLineChars: MAX_LINE_CHARS,
      maxLinesAtOnce: MAX_LINES_AT_ONCE,
      onLine: (line) => log(name, line),
      onSkipped: (count) => (lines += count),
    });
  }
}
