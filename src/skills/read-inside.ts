import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, realpathSync } from "node:fs";
import { lstat, open, realpath } from "node:fs/promises";
import { join } from "node:path";

export interface FileState {
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  /** Differs whenever the file was written or replaced. */
  readonly fingerprint: string;
}

export interface ReadFile extends FileState {
  readonly bytes: Buffer;
}

/** Links are not followed, and opening a pipe without a writer does not block. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

interface Stats {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly size: bigint;
  readonly mtimeMs: bigint;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
}

export function stateOf({ dev, ino, size, mtimeMs, mtimeNs, ctimeNs }: Stats): FileState {
  return {
    sizeBytes: Number(size),
    modifiedMs: Number(mtimeMs),
    fingerprint: `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`,
  };
}

/**
 * Reads a regular file below `root` whose path contains no links. A folder can be replaced by a link while the file is
 * opened, so the check follows: the open file must be the one at its link-free path.
 */
export async function readInside(
  root: string,
  path: string,
  { maxBytes }: { readonly maxBytes: number },
): Promise<ReadFile> {
  const file = join(root, path);
  const handle = await open(file, FLAGS);
  try {
    const opened = await handle.stat({ bigint: true });
    if (!opened.isFile()) throw new Error("it is not a regular file");
    const [real, standing] = await Promise.all([realpath(file), lstat(file, { bigint: true })]);
    if (real !== file || !isSameFile(standing, opened)) throw new Error("a link on the way leads elsewhere");
    if (opened.size > BigInt(maxBytes)) throw new Error(`it is larger than ${maxBytes} bytes`);
    return { ...stateOf(opened), bytes: await readAtMost(handle, Number(opened.size), maxBytes) };
  } finally {
    await handle.close();
  }
}

/** The beginning of such a file, read synchronously: faster for short reads of many files. */
export function readHeadInside(root: string, path: string, { maxBytes }: { readonly maxBytes: number }): Buffer {
  const file = join(root, path);
  const descriptor = openSync(file, FLAGS);
  try {
    const opened = fstatSync(descriptor, { bigint: true });
    if (!opened.isFile()) throw new Error("it is not a regular file");
    if (realpathSync.native(file) !== file || !isSameFile(lstatSync(file, { bigint: true }), opened))
      throw new Error("a link on the way leads elsewhere");
    const buffer = Buffer.allocUnsafe(Math.min(Number(opened.size), maxBytes));
    let total = 0;
    while (total < buffer.length) {
      const bytesRead = readSync(descriptor, buffer, total, buffer.length - total, total);
      if (bytesRead === 0) break;
      total += bytesRead;
    }
    return buffer.subarray(0, total);
  } finally {
    closeSync(descriptor);
  }
}

function isSameFile(a: Pick<Stats, "dev" | "ino">, b: Pick<Stats, "dev" | "ino">): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}

/** The file may grow while it is read. */
async function readAtMost(
  handle: Awaited<ReturnType<typeof open>>,
  sizeBytes: number,
  maxBytes: number,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let total = 0;
  for (;;) {
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(Math.max(sizeBytes - total, 0) + 1), 0);
    if (bytesRead === 0) return Buffer.concat(chunks, total);
    total += bytesRead;
    if (total > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`);
    chunks.push(buffer.subarray(0, bytesRead));
  }
}
