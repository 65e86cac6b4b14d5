import { closeSync, read, readSync } from "node:fs";
import { promisify } from "node:util";
import { Failure, fileFailure } from "../failure.ts";
import type { Workspace } from "../paths.ts";
import type { FileReadParams, FileReadResult } from "../rpc.ts";
import { decodeText } from "./text-detection.ts";

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
  params: FileReadParams,
  signal: AbortSignal,
): Promise<FileReadResult> {
  const { fd, sizeBytes } = workspace.openFile(params.path);
  const file = { fd, sizeBytes, path: params.path };
  try {
    const isByLines = params.startLine !== undefined || params.endLine !== undefined;
    return isByLines ? await readLineRange(file, params, signal) : readByteRange(file, params);
  } catch (error) {
    throw fileFailure(error, params.path);
  } finally {
    closeSync(fd);
  }
}

function readByteRange(file: OpenFile, params: FileReadParams): FileReadResult {
  const { path, encoding, maxBytes, offset = 0, length = Number.MAX_SAFE_INTEGER } = params;
  const bytes = readAt(file.fd, { offset, length: Math.min(length, maxBytes) });
  const endsBefore = offset + bytes.length < file.sizeBytes;
  const common = { path, sizeBytes: file.sizeBytes, isTruncated: endsBefore && bytes.length < length };
  const text = encoding === "base64" ? undefined : textOf(bytes, { isCut: endsBefore, isFromStart: offset === 0 });
  if (text === undefined && encoding === "utf-8") throw notText(path);
  if (text === undefined) return { ...common, encoding: "base64", content: bytes.toString("base64") };
  const totalLines = endsBefore || offset > 0 ? {} : { totalLines: countLines(text) };
  return { ...common, encoding: "utf-8", content: text, ...totalLines };
}

function textOf(bytes: Buffer, { isCut, isFromStart }: { isCut: boolean; isFromStart: boolean }): string | undefined {
  return decodeText(isFromStart ? bytes : withoutContinuation(bytes), { isCut })?.text;
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
async function readLineRange(file: OpenFile, params: FileReadParams, signal: AbortSignal): Promise<FileReadResult> {
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
  const decoded = decodeText(range.bytes(), { isCut: range.isTruncated });
  if (decoded === undefined) throw notText(file.path);
  const lines = countLines(decoded.text);
  return {
    path: params.path,
    encoding: "utf-8",
    content: decoded.text,
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

/** A range that starts in the middle of a character starts with the next one. */
function withoutContinuation(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.subarray(start);
}

function notText(path: string): Failure {
  return new Failure(
    "not_text",
    `${path}: it is no UTF-8 text`,
    'read it with encoding "base64", or look at it in the shell',
  );
}
