import type { LoadedConfig } from "../config/load.ts";
import { batchLines } from "../telemetry/batched-lines.ts";
import { LogFile } from "../telemetry/log-file.ts";
import { createLogger, type Logger, type LoggerOptions, type RootLogger } from "../telemetry/logger.ts";
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
