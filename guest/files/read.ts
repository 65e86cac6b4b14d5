import type { GuestParams, GuestResult } from "../../contract/guest.ts";
import { closeSync, read, readSync } from "node:fs";
import { promisify } from "node:util";
import { BadParams, Failure, fileFailure } from "../failure.ts";
import type { Workspace } from "../paths.ts";
import { CHARACTER_BYTES_MAX, decodeAs, partOf } from "./byte-range.ts";

const readFd = promisify(read);
const CHUNK_BYTES = 1024 * 1024;
/** Counting the lines of a larger file to its end takes longer than the number is worth. */
const COUNTED_BYTES_MAX = 512 * 1024 * 1024;

interface OpenFile {
  readonly fd: number;
  readonly sizeBytes: number;
  readonly path: string;
}

export async function readFile(
  workspace: Workspace,
  params: GuestParams["file.read"],
  signal: AbortSignal,
): Promise<GuestResult<"file.read">> {
  const { startLine, endLine } = params;
  if (startLine !== undefined && endLine !== undefined && endLine < startLine)
    throw new BadParams(`end_line (${endLine}) is before start_line (${startLine}): exchange them`);
  const { fd, sizeBytes } = workspace.openFile(params.path);
  const file = { fd, sizeBytes, path: params.path };
  try {
    const isByLines = startLine !== undefined || endLine !== undefined;
    return isByLines ? await readLineRange(file, params, signal) : readByteRange(file, params);
  } catch (error) {
    throw fileFailure(error, params.path);
  } finally {
    closeSync(fd);
  }
}

function readByteRange(file: OpenFile, params: GuestParams["file.read"]): GuestResult<"file.read"> {
  const { path, encoding, maxBytes, offset = 0, length = Number.MAX_SAFE_INTEGER } = params;
  const wantedBytes = Math.min(length, maxBytes);
  const bytes = readAt(file.fd, { offset, length: wantedBytes + CHARACTER_BYTES_MAX - 1 });
  const part = partOf(bytes, { encoding, offset, wantedBytes, isByCaller: length <= maxBytes });
  if (part === undefined) throw notText(path);
  const start = offset + part.startsAt;
  const end = offset + part.endsAt;
  const endsBefore = end < file.sizeBytes;
  const isWhole = offset === 0 && !endsBefore;
  return {
    path,
    sizeBytes: file.sizeBytes,
    encoding: part.encoding,
    content: part.content,
    ...(isWhole && part.encoding !== "base64" ? { totalLines: countLines(part.content) } : {}),
    ...(isWhole ? {} : { offset: start }),
    ...(endsBefore ? { nextOffset: end } : {}),
    isTruncated: endsBefore && length > wantedBytes,
  };
}

function readAt(fd: number, { offset, length }: { offset: number; length: number }): Buffer {
  const chunks: Buffer[] = [];
  for (let done = 0; done < length;) {
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, length - done));
    const byteCount = readSync(fd, chunk, 0, chunk.length, offset + done);
    if (byteCount === 0) break;
    chunks.push(chunk.subarray(0, byteCount));
    done += byteCount;
  }
  return Buffer.concat(chunks);
}

/** Goes through the file once, in pieces: what is outside the range is only counted. */
async function readLineRange(
  file: OpenFile,
  params: GuestParams["file.read"],
  signal: AbortSignal,
): Promise<GuestResult<"file.read">> {
  if (params.encoding === "utf-16le")
    throw new BadParams("start_line and end_line do not go with encoding utf-16le: use offset and length");
  const range = new LineRange(params.startLine ?? 1, params.endLine ?? Number.MAX_SAFE_INTEGER, params.maxBytes);
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  let isAtEnd = false;
  for (let position = 0; !(range.isComplete && file.sizeBytes > COUNTED_BYTES_MAX);) {
    signal.throwIfAborted();
    const { bytesRead } = await readFd(file.fd, chunk, 0, chunk.length, position);
    isAtEnd = bytesRead === 0;
    if (isAtEnd) break;
    range.push(chunk.subarray(0, bytesRead));
    position += bytesRead;
  }
  const encoding = params.encoding === "latin1" ? "latin1" : "utf-8";
  const text = decodeAs(encoding, range.bytes(), { isCut: range.isTruncated, isFromStart: range.startLine === 1 });
  if (text === undefined) throw notText(file.path);
  const lines = countLines(text);
  return {
    path: params.path,
    encoding,
    content: text,
    sizeBytes: file.sizeBytes,
    ...(isAtEnd ? { totalLines: range.totalLines } : {}),
    startLine: range.startLine,
    endLine: range.startLine + Math.max(lines, 1) - 1,
    isTruncated: range.isTruncated,
  };
}

class LineRange {
  readonly startLine: number;
  readonly #endLine: number;
  readonly #maxBytes: number;
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;
  #line = 1;
  #endsWithNewline = true;
  isTruncated = false;

  constructor(startLine: number, endLine: number, maxBytes: number) {
    this.startLine = Math.max(1, startLine);
    this.#endLine = endLine;
    this.#maxBytes = maxBytes;
  }

  get isComplete(): boolean {
    return this.#line > this.#endLine;
  }

  get totalLines(): number {
    return this.#endsWithNewline ? this.#line - 1 : this.#line;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#kept);
  }

  push(chunk: Buffer): void {
    let start = 0;
    while (start < chunk.length) {
      const newline = chunk.indexOf(10, start);
      const end = newline === -1 ? chunk.length : newline + 1;
      if (this.#line >= this.startLine && this.#line <= this.#endLine) this.#keep(chunk.subarray(start, end));
      if (newline !== -1) this.#line += 1;
      start = end;
    }
    this.#endsWithNewline = chunk.at(-1) === 10;
  }

  #keep(bytes: Buffer): void {
    const room = this.#maxBytes - this.#keptBytes;
    if (bytes.length > room) this.isTruncated = true;
    if (room <= 0) return;
    // The chunk is read into again.
    const kept = Buffer.from(bytes.subarray(0, room));
    this.#kept.push(kept);
    this.#keptBytes += kept.length;
  }
}

function countLines(text: string): number {
  let lines = 0;
  for (let index = text.indexOf("\n"); index !== -1; index = text.indexOf("\n", index + 1)) lines += 1;
  return text === "" || text.endsWith("\n") ? lines : lines + 1;
}

function notText(path: string): Failure {
  return new Failure(
    "not_text",
    `${path}: it is no UTF-8 text`,
    'read it with encoding "base64" (or "latin1", "utf-16le" if you know that it is), or look at it in the shell',
  );
}
