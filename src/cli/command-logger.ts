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

/**
 * The server's logger. It uses the configured format. On a terminal, when no format is configured, it uses the pretty
 * format.
 */
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

/** For commands that print a result: logs only warnings and errors, unless a level is configured. */
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
 * Collects log lines until the end of the current turn of the event loop and writes them at once: one write instead of
 * one per line. A warning or an error flushes immediately, because the process may exit right after it.
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
