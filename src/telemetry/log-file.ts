import { closeSync, fstatSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** The log contains names and arguments of clients, so only its owner may read it. */
const MODE = 0o600;
const RETRY_MS = 10_000;

export interface LogFileOptions {
  readonly path: string;
  readonly maxBytes: number;
  /** The number of rotated files that are kept, as `path.1`, `path.2` and so on. */
  readonly keep: number;
  /** Called for each failed write. Writes in the following `RETRY_MS` are skipped. */
  readonly onTrouble: (error: unknown) => void;
}

/**
 * Appends lines to a file and rotates it when it is full. When a write fails, lines are dropped for `RETRY_MS`, and the
 * server continues.
 */
export class LogFile {
  readonly #options: LogFileOptions;
  #fd: number | undefined;
  #size = 0;
  #retryAtMs = 0;

  /** @throws when the file cannot be opened, so that the error appears at the start of the server. */
  constructor(options: LogFileOptions) {
    this.#options = options;
    mkdirSync(dirname(options.path), { recursive: true });
    this.#open();
  }

  write(lines: string): void {
    if (performance.now() < this.#retryAtMs) return;
    try {
      const bytes = Buffer.from(lines);
      if (this.#size > 0 && this.#size + bytes.length > this.#options.maxBytes) this.#rotate();
      else if (!this.#isSameFile()) this.#open();
      if (this.#fd === undefined) this.#open();
      for (let at = 0; at < bytes.length;) at += writeSync(this.#fd ?? -1, bytes, at);
      this.#size += bytes.length;
      this.#retryAtMs = 0;
    } catch (error) {
      this.#retryAtMs = performance.now() + RETRY_MS;
      this.close();
      this.#options.onTrouble(error);
    }
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #open(): void {
    this.close();
    this.#fd = openSync(this.#options.path, "a", MODE);
    this.#size = fstatSync(this.#fd).size;
  }

  #rotate(): void {
    const { path, keep } = this.#options;
    this.close();
    rmSync(`${path}.${keep}`, { force: true });
    for (let number = keep - 1; number >= 1; number -= 1) moveIfThere(`${path}.${number}`, `${path}.${number + 1}`);
    if (keep === 0) rmSync(path, { force: true });
    else moveIfThere(path, `${path}.1`);
    this.#open();
  }

  /** Programs that rotate logs rename the file and expect a new file under its name. */
  #isSameFile(): boolean {
    if (this.#fd === undefined) return false;
    const there = statSync(this.#options.path, { throwIfNoEntry: false });
    return there?.ino === fstatSync(this.#fd).ino;
  }
}

function moveIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error) || error.code !== "ENOENT") throw error;
  }
}
