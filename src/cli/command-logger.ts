import type { LoadedConfig } from "../config/load.ts";
import { LogFile } from "../telemetry/log-file.ts";
import {
  createLogger,
  type Logger,
  type LoggerOptions,
  type RootLogger,
  type LoggerLevel,
} from "../telemetry/logger.ts";
import type { Terminal } from "./terminal.ts";

/** The server's logger: as configured, and for a person when a terminal shows it and nobody chose a format. */
export function serverLogger(loaded: LoadedConfig, terminal: Terminal): RootLogger {
  const { file, fileMaxBytes: maxBytes, fileKeep: keep } = loaded.config.logging;
  const options = loggerOptions(loaded, terminal);
  if (file === "") return createLogger({ ...options, write: batchLines(terminal.err) });
  const onTrouble = (error: unknown): void => logger.error("the log file cannot be written; lines are lost", { error });
  const logFile = new LogFile({ path: file, maxBytes, keep, onTrouble });
  const logger = createLogger({
    ...options,
    write: batchLines(terminal.err),
    copy: batchLines((lines) => logFile.write(lines)),
  });
  return logger;
}

/** Commands that print a result stay quiet unless something is wrong, or a level was chosen. */
export function quietLogger(loaded: LoadedConfig, terminal: Terminal): Logger {
  const { config, sources } = loaded;
  const isChosen = sources.get("logging.level")?.layer !== "default";
  const level = isChosen ? config.logging.level : "warning";
  return createLogger({ ...loggerOptions(loaded, terminal), level, write: terminal.err });
}

function loggerOptions({ config, sources }: LoadedConfig, terminal: Terminal): LoggerOptions {
  const isChosen = sources.get("logging.format")?.layer !== "default";
  const format = !isChosen && terminal.errIsTty ? "pretty" : config.logging.format;
  return { level: config.logging.level, format, color: terminal.errColor, redact: config.ledger.redact };
}

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
