import type { LoadedConfig } from "../config/load.ts";
import { createLogger, type Logger } from "../telemetry/logger.ts";
import type { Terminal } from "./terminal.ts";

/** The server's logger: as configured, and for a person when a terminal shows it and nobody chose a format. */
export function serverLogger({ config, sources }: LoadedConfig, terminal: Terminal): Logger {
  const isChosen = sources.get("logging.format")?.layer !== "default";
  const format = !isChosen && terminal.errIsTty ? "pretty" : config.logging.format;
  return createLogger({ level: config.logging.level, format, write: terminal.err, color: terminal.errColor });
}

/** Commands that print a result stay quiet unless something is wrong, or a level was chosen. */
export function quietLogger(loaded: LoadedConfig, terminal: Terminal): Logger {
  const { config, sources } = loaded;
  const isChosen = sources.get("logging.level")?.layer !== "default";
  const level = isChosen ? config.logging.level : "warning";
  return serverLogger({ ...loaded, config: { ...config, logging: { ...config.logging, level } } }, terminal);
}
