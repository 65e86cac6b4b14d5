import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Callers may read what is in it, although it is not in the workspace. */
export const OUTPUT_FOLDER = "/tmp/.owlclaw-output";

const FILE_BYTES_MAX = 64 * 1024 * 1024;
const FOLDER_BYTES_MAX = 256 * 1024 * 1024;

/** A file that takes a program's whole output, up to a limit. It never fails: output matters less than the program. */
export class OutputFile {
  readonly path: string;
  #fd: number | undefined;
  #sizeBytes = 0;

  constructor() {
    this.path = join(OUTPUT_FOLDER, `${randomBytes(9).toString("base64url")}.txt`);
    try {
      mkdirSync(OUTPUT_FOLDER, { recursive: true, mode: 0o700 });
      this.#fd = openSync(this.path, "wx", 0o600);
    } catch {
      // The disk is full, say. The head and the tail are kept in memory all the same.
    }
  }

  get isOpen(): boolean {
    return this.#fd !== undefined;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** For a result: only where there is something to read. */
  get reference(): { readonly file?: string } {
    return this.isOpen || this.#sizeBytes > 0 ? { file: this.path } : {};
  }

  write(text: string): void {
    if (this.#fd === undefined) return;
    const bytes = Buffer.from(text).subarray(0, FILE_BYTES_MAX - this.#sizeBytes);
    try {
      this.#sizeBytes += writeSync(this.#fd, bytes);
      if (this.#sizeBytes < FILE_BYTES_MAX) return;
    } catch {
      // The disk is full: what is there stays.
    }
    this.close();
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** All output files together stay below a limit too: the oldest go first. */
export class OutputFiles {
  readonly #files = new Set<OutputFile>();

  create(): OutputFile {
    let totalBytes = 0;
    for (const file of this.#files) totalBytes += file.sizeBytes;
    for (const file of this.#files) {
      if (totalBytes <= FOLDER_BYTES_MAX) break;
      if (file.isOpen) continue;
      rmSync(file.path, { force: true });
      this.#files.delete(file);
      totalBytes -= file.sizeBytes;
    }
    const created = new OutputFile();
    this.#files.add(created);
    return created;
  }
}
