import type { Readable } from "node:stream";
import { createInterface } from "node:readline";

/** What a server writes to stderr: lines of its log, and nothing else. Whatever else comes fails who asks. */
export class LogLines {
  readonly lines: Record<string, unknown>[] = [];
  readonly #strangers: string[] = [];

  constructor(stderr: Readable, onLine: () => void) {
    createInterface({ input: stderr }).on("line", (line) => {
      const entry = toEntry(line);
      if (entry === undefined) this.#strangers.push(line);
      else this.lines.push(entry);
      onLine();
    });
  }

  /** @throws when the server wrote something that is no line of its log, with all of it. */
  assertNothingElse(): void {
    if (this.#strangers.length > 0)
      throw new Error(`the server wrote to stderr what is not its log:\n${this.#strangers.join("\n")}`);
  }
}

function toEntry(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
