import { formatPretty } from "./pretty-line.ts";
import { toPlainFields } from "./plain-fields.ts";
import { createRedactor } from "./redact.ts";
import { RepeatLimit } from "./repeat-limit.ts";
import { areSimple } from "./simple-fields.ts";
import { withoutControls } from "./without-controls.ts";

export type LoggerLevel = "debug" | "info" | "warning" | "error";
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes facts for operators. It never throws: a broken log must not break a call. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warning(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Whether lines of this level are written now: for callers whose fields cost something to make. */
  shows(level: LoggerLevel): boolean;
  /** A logger that adds these fields to each of its lines. */
  child(fields: LogFields): Logger;
}

/** The root of all loggers of a process: what is set here holds for its children too. */
export interface RootLogger extends Logger {
  level: LoggerLevel;
}

export interface LoggerOptions {
  readonly level: LoggerLevel;
  readonly format: "json" | "pretty";
  /** Gets whole lines, each ending with a newline. Default: stderr, since stdout belongs to the protocol. */
  readonly write?: (line: string, level: LoggerLevel) => void;
  /** Gets the same lines as JSON, whatever the format. */
  readonly copy?: (line: string, level: LoggerLevel) => void;
  /** Colours in pretty lines. Default: no. */
  readonly color?: boolean;
  /** As in `ledger.redact`: what else is no business of the log. */
  readonly redact?: readonly string[];
}

const NO_FIELDS: LogFields = {};

const RANK: Record<LoggerLevel, number> = { debug: 0, info: 1, warning: 2, error: 3 };

export function createLogger(options: LoggerOptions): RootLogger {
  const { format, color = false, write = writeToStderr, copy, redact = [] } = options;
  const redactor = createRedactor(redact);
  const put: Emit = (level, message, fields) => {
    const time = new Date().toISOString();
    // Most lines need no copy piece by piece, and one look for secrets at the whole is cheaper than one at each part.
    if (format === "json" && areSimple(fields)) {
      const line = simpleLine(`{"time":"${time}","level":"${level}","message":${JSON.stringify(message)}`, fields);
      if (redactor.isClean(line)) {
        write(line, level);
        copy?.(line, level);
        return;
      }
    }
    const head = { time, level, message };
    const plain = toPlainFields(fields, redactor);
    // The head stands first for readers, and comes again at the end so that no field can replace it.
    const isJson = format === "json" || copy !== undefined;
    const json = isJson ? withoutControls(JSON.stringify({ ...head, ...plain, ...head })) : "";
    write(`${format === "json" ? json : formatPretty({ ...head, fields: plain, color })}\n`, level);
    copy?.(`${json}\n`, level);
  };
  const repeats = new RepeatLimit((level, message, count) => put(level, message, { repeated: count }));
  const emit: Emit = (level, message, fields) => {
    try {
      if (level !== "debug" && level !== "info" && !repeats.admits(level, message, fields)) return;
      put(level, message, fields);
    } catch {
      // Nobody is left to tell: the log itself is what failed.
    }
  };
  return new LevelLogger({ rank: RANK[options.level] }, emit, NO_FIELDS);
}

/** Texts put together cost less than objects copied together. */
function simpleLine(head: string, fields: LogFields): string {
  const tail = JSON.stringify(fields);
  return `${withoutControls(tail === "{}" ? `${head}}` : `${head},${tail.slice(1)}`)}\n`;
}

type Emit = (level: LoggerLevel, message: string, fields: LogFields) => void;

/** Shared by a logger and its children, so that a change reaches all of them. */
interface Threshold {
  rank: number;
}

class LevelLogger implements RootLogger {
  readonly #threshold: Threshold;
  readonly #emit: Emit;
  readonly #bound: LogFields;

  constructor(threshold: Threshold, emit: Emit, bound: LogFields) {
    this.#threshold = threshold;
    this.#emit = emit;
    this.#bound = bound;
  }

  get level(): LoggerLevel {
    return LEVELS.find((level) => RANK[level] >= this.#threshold.rank) ?? "error";
  }

  set level(level: LoggerLevel) {
    this.#threshold.rank = RANK[level];
  }

  shows(level: LoggerLevel): boolean {
    return RANK[level] >= this.#threshold.rank;
  }

  debug(message: string, fields: LogFields = NO_FIELDS): void {
    this.#write("debug", message, fields);
  }

  info(message: string, fields: LogFields = NO_FIELDS): void {
    this.#write("info", message, fields);
  }

  warning(message: string, fields: LogFields = NO_FIELDS): void {
    this.#write("warning", message, fields);
  }

  error(message: string, fields: LogFields = NO_FIELDS): void {
    this.#write("error", message, fields);
  }

  child(fields: LogFields): Logger {
    return new LevelLogger(this.#threshold, this.#emit, { ...this.#bound, ...fields });
  }

  #write(level: LoggerLevel, message: string, fields: LogFields): void {
    if (RANK[level] < this.#threshold.rank) return;
    this.#emit(level, message, this.#bound === NO_FIELDS ? fields : { ...this.#bound, ...fields });
  }
}

const LEVELS: readonly LoggerLevel[] = ["debug", "info", "warning", "error"];

/** For code that wants a logger where nobody listens, such as tests. */
export const SILENT_LOGGER: Logger = new LevelLogger({ rank: Number.POSITIVE_INFINITY }, () => undefined, {});

function writeToStderr(line: string): void {
  process.stderr.write(line);
}
