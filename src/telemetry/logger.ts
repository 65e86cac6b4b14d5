import { formatPretty } from "./pretty-line.ts";
import { toPlainFields } from "./plain-fields.ts";

export type LoggerLevel = "debug" | "info" | "warning" | "error";
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes facts for operators. It never throws: a broken log must not break a call. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warning(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger that adds these fields to each of its lines. */
  child(fields: LogFields): Logger;
}

export interface LoggerOptions {
  readonly level: LoggerLevel;
  readonly format: "json" | "pretty";
  /** Gets whole lines, each ending with a newline. Default: stderr, since stdout belongs to the protocol. */
  readonly write?: (line: string) => void;
  /** Colours in pretty lines. Default: no. */
  readonly color?: boolean;
}

const RANK: Record<LoggerLevel, number> = { debug: 0, info: 1, warning: 2, error: 3 };

export function createLogger(options: LoggerOptions): Logger {
  const { format, color = false, write = writeToStderr } = options;
  const emit = (level: LoggerLevel, message: string, fields: LogFields): void => {
    try {
      const plain = toPlainFields(fields);
      const head = { time: new Date().toISOString(), level, message };
      // The head stands first for readers, and comes again at the end so that no field can replace it.
      const line =
        format === "json"
          ? JSON.stringify({ ...head, ...plain, ...head })
          : formatPretty({ ...head, fields: plain, color });
      write(`${line}\n`);
    } catch {
      // Nobody is left to tell: the log itself is what failed.
    }
  };
  return makeLogger(RANK[options.level], emit, {});
}

/** For code that wants a logger where nobody listens, such as tests. */
export const SILENT_LOGGER: Logger = makeLogger(Number.POSITIVE_INFINITY, ignore, {});

type Emit = (level: LoggerLevel, message: string, fields: LogFields) => void;

/** Levels below the threshold get one shared empty function, so that a disabled line costs a call and no work. */
function makeLogger(threshold: number, emit: Emit, bound: LogFields): Logger {
  const at = (level: LoggerLevel): ((message: string, fields?: LogFields) => void) =>
    RANK[level] < threshold ? ignore : (message, fields) => emit(level, message, { ...bound, ...fields });
  return {
    debug: at("debug"),
    info: at("info"),
    warning: at("warning"),
    error: at("error"),
    child: (fields) => makeLogger(threshold, emit, { ...bound, ...fields }),
  };
}

function ignore(): void {}

function writeToStderr(line: string): void {
  process.stderr.write(line);
}
