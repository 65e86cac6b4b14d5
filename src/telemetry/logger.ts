import { toPlainFields, withoutControls } from "./plain-fields.ts";
import { createRedactor } from "./redact.ts";

export type LoggerLevel = "debug" | "info" | "warning" | "error";
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes structured lines for operators. It never throws: a failed log must not fail a call. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warning(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Whether lines of this level are written. For callers whose fields are expensive to compute. */
  shows(level: LoggerLevel): boolean;
  /** Returns a logger that adds these fields to each of its lines. */
  child(fields: LogFields): Logger;
}

/** The root of all loggers of a process. Its level applies to its children too. */
export interface RootLogger extends Logger {
  level: LoggerLevel;
}

export interface LoggerOptions {
  readonly level: LoggerLevel;
  readonly format: "json" | "pretty";
  /** Receives whole lines, each ending with a newline. Default: stderr, because stdout is reserved for the protocol. */
  readonly write?: (line: string, level: LoggerLevel) => void;
  /** Receives the same lines as JSON, independent of `format`. */
  readonly copy?: (line: string, level: LoggerLevel) => void;
  /** Whether pretty lines have colours. Default: false. */
  readonly color?: boolean;
  /** Rules as in `ledger.redact`, for further secrets. */
  readonly redact?: readonly string[];
}

const NO_FIELDS: LogFields = {};

const RANK: Record<LoggerLevel, number> = { debug: 0, info: 1, warning: 2, error: 3 };

export function createLogger(options: LoggerOptions): RootLogger {
  const { format, color = false, write = writeToStderr, copy, redact = [] } = options;
  const redactor = createRedactor(redact);
  const put: Emit = (level, message, fields) => {
    const time = new Date().toISOString();
    // Fast path: most lines need no copy of their fields, and checking the whole line for secrets once is cheaper than
    // each part.
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
    // The head comes first for readers, and again at the end, so that no field can replace it.
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
      // The log itself failed, so the error cannot be logged.
    }
  };
  return new LevelLogger({ rank: RANK[options.level] }, emit, NO_FIELDS);
}

/** Concatenating texts is cheaper than merging objects. */
function simpleLine(head: string, fields: LogFields): string {
  const tail = JSON.stringify(fields);
  return `${withoutControls(tail === "{}" ? `${head}}` : `${head},${tail.slice(1)}`)}\n`;
}

type Emit = (level: LoggerLevel, message: string, fields: LogFields) => void;

/** Shared by a logger and its children, so that a new level applies to all of them. */
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

/** Discards all lines, for example in tests. */
export const SILENT_LOGGER: Logger = new LevelLogger({ rank: Number.POSITIVE_INFINITY }, () => undefined, {});

function writeToStderr(line: string): void {
  process.stderr.write(line);
}

export interface PrettyLine {
  readonly time: string;
  readonly level: LoggerLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly color: boolean;
}

const COLOR: Record<LoggerLevel, string> = { debug: "90", info: "36", warning: "33", error: "31" };

/**
 * One line for a person: `10:15:02.114 info listening url=http://localhost:8080`. A stack trace follows on separate,
 * indented lines.
 */
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

const MAX_TEXT_CHARS = 1000;
const MAX_FIELDS = 50;

/** Keys at the start of every line. A field must not replace them. */
const HEAD: ReadonlySet<string> = new Set(["time", "level", "message"]);

/**
 * Whether the fields are few, short and flat, as in most lines. Such fields are passed to JSON.stringify without a
 * copy.
 */
export function areSimple(fields: Readonly<Record<string, unknown>>): boolean {
  try {
    return areFlat(fields, 0);
  } catch {
    // A getter threw, or a proxy is revoked. The careful copy handles such fields.
    return false;
  }
}

function areFlat(fields: Readonly<Record<string, unknown>>, depth: number): boolean {
  let count = 0;
  for (const name in fields) {
    count += 1;
    if (count > MAX_FIELDS || (depth === 0 && HEAD.has(name)) || !isSimple(fields[name], depth)) return false;
  }
  return true;
}

function isSimple(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
      return value.length <= MAX_TEXT_CHARS;
    case "number":
      return Number.isFinite(value);
    case "boolean":
    case "undefined":
      return true;
    case "object":
      return value === null || (depth === 0 && isPlainObject(value) && areFlat(value, depth + 1));
    default:
      return false;
  }
}

function isPlainObject(value: object): value is Record<string, unknown> {
  return Object.getPrototypeOf(value) === Object.prototype && !("toJSON" in value);
}

const WINDOW_MS = 10_000;
const MAX_IN_WINDOW = 20;
/** The reasons in keys come from outside, so the number of keys is limited. */
const MAX_KEYS = 500;
const MAX_REASON_CHARS = 200;

interface Repeats {
  readonly level: LoggerLevel;
  readonly message: string;
  count: number;
}

/**
 * Limits repetitions of the same warning or error, which would fill the disk. After `MAX_IN_WINDOW` lines in ten
 * seconds the rest is counted, and the count is logged once.
 */
export class RepeatLimit {
  readonly #tell: (level: LoggerLevel, message: string, count: number) => void;
  readonly #seen = new Map<string, Repeats>();
  #timer: NodeJS.Timeout | undefined;

  constructor(tell: (level: LoggerLevel, message: string, count: number) => void) {
    this.#tell = tell;
  }

  admits(level: LoggerLevel, message: string, fields: LogFields): boolean {
    const key = `${level} ${message} ${reasonOf(fields)}`;
    const seen = this.#seen.get(key);
    if (seen !== undefined) {
      seen.count += 1;
      return seen.count <= MAX_IN_WINDOW;
    }
    if (this.#seen.size >= MAX_KEYS) this.#endWindow();
    this.#seen.set(key, { level, message, count: 1 });
    this.#timer ??= setTimeout(() => this.#endWindow(), WINDOW_MS).unref();
    return true;
  }

  #endWindow(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const over = [...this.#seen.values()].filter(({ count }) => count > MAX_IN_WINDOW);
    this.#seen.clear();
    for (const { level, message, count } of over) this.#tell(level, message, count - MAX_IN_WINDOW);
  }
}

/** Failures of the same kind with different reasons are counted separately. */
function reasonOf({ error, reason, kind }: LogFields): string {
  const text = error instanceof Error ? error.message : (reason ?? kind);
  return typeof text === "string" ? text.slice(0, MAX_REASON_CHARS) : "";
}
