import type { LogFields, LoggerLevel } from "./logger.ts";

const WINDOW_MS = 10_000;
const MAX_IN_WINDOW = 20;
/** Messages are ours, reasons come from outside: the memory for them must end somewhere. */
const MAX_KEYS = 500;
const MAX_REASON_CHARS = 200;

interface Repeats {
  readonly level: LoggerLevel;
  readonly message: string;
  count: number;
}

/**
 * The same warning again and again says nothing new and fills the disk: after some of them the rest of ten seconds is
 * counted, and the count is written once.
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

/** Two failures of one kind with different reasons are two things to know. */
function reasonOf({ error, reason, kind }: LogFields): string {
  const text = error instanceof Error ? error.message : (reason ?? kind);
  return typeof text === "string" ? text.slice(0, MAX_REASON_CHARS) : "";
}
