import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Outside the workspace; callers may read files in it. */
export const OUTPUT_FOLDER = "/tmp/.owlclaw-output";

const FILE_BYTES_MAX = 64 * 1024 * 1024;
const CUT_NOTE = Buffer.from("\n[… the rest was not kept: of an output at most 64 MiB are …]\n");
const FOLDER_BYTES_MAX = 256 * 1024 * 1024;

/** A file with a program's whole output, up to a limit. Its failures are ignored: they must not fail the program. */
export class OutputFile {
  readonly path: string;
  #fd: number | undefined;
  #sizeBytes = 0;
  #isWhole = true;

  constructor() {
    this.path = join(OUTPUT_FOLDER, `${randomBytes(9).toString("base64url")}.txt`);
    try {
      mkdirSync(OUTPUT_FOLDER, { recursive: true, mode: 0o700 });
      this.#fd = openSync(this.path, "wx", 0o600);
    } catch {
      // For example, the disk is full. Head and tail are still in memory.
    }
  }

  get isOpen(): boolean {
    return this.#fd !== undefined;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** For a result: `undefined` when nothing was written. */
  get reference(): { readonly file?: string; readonly keptBytes?: number } {
    if (!this.isOpen && this.#sizeBytes === 0) return {};
    return { file: this.path, ...(this.#isWhole ? {} : { keptBytes: this.#sizeBytes }) };
  }

  write(text: string): void {
    if (this.#fd === undefined) return this.#loseSome(text);
    const bytes = Buffer.from(text);
    const room = FILE_BYTES_MAX - CUT_NOTE.length - this.#sizeBytes;
    try {
      this.#sizeBytes += writeAll(this.#fd, bytes.subarray(0, wholeCharacters(bytes, room)));
      if (bytes.length <= room) return;
      writeAll(this.#fd, CUT_NOTE);
    } catch {
      // The disk is full: the file keeps what has been written.
    }
    this.#isWhole = false;
    this.close();
  }

  #loseSome(text: string): void {
    if (text !== "") this.#isWhole = false;
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

function writeAll(fd: number, bytes: Buffer): number {
  let done = 0;
  while (done < bytes.length) done += writeSync(fd, bytes, done);
  return done;
}

/** The longest prefix that fits and does not cut a character. */
function wholeCharacters(bytes: Buffer, room: number): number {
  let end = room;
  while (end > 0 && end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return end;
}

/** Limits the size of all output files: the oldest are removed first. */
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
