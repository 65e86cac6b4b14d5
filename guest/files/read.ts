import type { GuestParams, GuestResult, TextEncoding, FileText } from "../../contract/guest.ts";
import { closeSync, read, readSync } from "node:fs";
import { promisify } from "node:util";
import { BadParams, Failure, fileFailure } from "../failure.ts";
import type { Workspace } from "../paths.ts";
import { decodeText, type DecodeOptions } from "./text-detection.ts";

const readFd = promisify(read);
const CHUNK_BYTES = 1024 * 1024;
/** The lines of a larger file are not counted to its end. */
const COUNTED_BYTES_MAX = 512 * 1024 * 1024;
/** Bytes of a UTF-8 character. */
const CHARACTER_BYTES_MAX = 4;

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

/** Reads the file once, in chunks; lines outside the range are only counted. */
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
    // Copied, because the chunk's buffer is reused.
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

interface PartOptions {
  readonly encoding: GuestParams["file.read"]["encoding"];
  readonly offset: number;
  readonly wantedBytes: number;
  /** With `length` the caller chose the end; otherwise the limit truncates. */
  readonly isByCaller: boolean;
}

/** The part of the read bytes that is shown. */
interface Part {
  readonly encoding: TextEncoding | "base64";
  readonly content: string;
  readonly startsAt: number;
  readonly endsAt: number;
}

/**
 * A part of a text has the whole characters that start in it, so consecutive parts lose no character. `bytes` has a few
 * more bytes than requested for that. `undefined` when it should be text and is not.
 */
function partOf(bytes: Buffer, options: PartOptions): Part | undefined {
  const { encoding, wantedBytes } = options;
  if (encoding === "latin1" || encoding === "utf-16le") return textPart(bytes, { ...options, encoding });
  const utf8 = encoding === "base64" ? undefined : utf8Part(bytes, options);
  if (utf8 !== undefined || encoding === "utf-8") return utf8;
  const endsAt = Math.min(wantedBytes, bytes.length);
  const content = bytes.subarray(0, endsAt).toString("base64");
  return { encoding: "base64", content, startsAt: 0, endsAt };
}

function decodeAs(encoding: TextEncoding, bytes: Buffer, options: DecodeOptions): string | undefined {
  if (encoding === "utf-8") return decodeText(bytes, options)?.text;
  if (encoding === "latin1") return bytes.toString("latin1");
  const text = bytes.toString("utf16le");
  return options.isFromStart === true ? text.replace(/^\uFEFF/u, "") : text;
}

function utf8Part(bytes: Buffer, { offset, wantedBytes, isByCaller }: PartOptions): Part | undefined {
  const startsAt = offset === 0 ? 0 : nextCharacter(bytes, 0);
  const endsAt = isByCaller ? nextCharacter(bytes, wantedBytes) : lastCharacter(bytes, wantedBytes);
  if (endsAt <= startsAt && bytes.length > 0) return { encoding: "utf-8", content: "", startsAt, endsAt: startsAt };
  const content = decodeAs("utf-8", bytes.subarray(startsAt, endsAt), { isCut: false, isFromStart: offset === 0 });
  return content === undefined ? undefined : { encoding: "utf-8", content, startsAt, endsAt };
}

/** Fixed-width encodings: for two bytes, characters start at even offsets. */
function textPart(bytes: Buffer, options: PartOptions & { readonly encoding: TextEncoding }): Part | undefined {
  const { encoding, offset, wantedBytes } = options;
  const width = encoding === "latin1" ? 1 : 2;
  const startsAt = offset % width;
  const wholeBytes = Math.ceil((Math.min(wantedBytes, bytes.length) - startsAt) / width) * width;
  const endsAt = Math.min(bytes.length, startsAt + wholeBytes);
  const content = decodeAs(encoding, bytes.subarray(startsAt, endsAt), { isCut: false, isFromStart: offset === 0 });
  return content === undefined ? undefined : { encoding, content, startsAt, endsAt };
}

/** `at`, or the start of the next character when `at` is inside one. */
function nextCharacter(bytes: Buffer, at: number): number {
  let found = Math.min(at, bytes.length);
  while (found < bytes.length && found < at + CHARACTER_BYTES_MAX - 1 && isContinuation(bytes, found)) found += 1;
  return found;
}

function lastCharacter(bytes: Buffer, at: number): number {
  let found = Math.min(at, bytes.length);
  while (found > 0 && found > at - CHARACTER_BYTES_MAX + 1 && isContinuation(bytes, found)) found -= 1;
  return found;
}

function isContinuation(bytes: Buffer, at: number): boolean {
  return ((bytes[at] ?? 0) & 0xc0) === 0x80;
}

/** Reads many small files. A file that cannot be read does not affect the others. */
export function readTexts(
  workspace: Workspace,
  { paths, maxBytes }: GuestParams["file.texts"],
): GuestResult<"file.texts"> {
  // One byte more than the limit shows that a file is larger, whatever its reported size.
  const room = Buffer.allocUnsafe(maxBytes + 1);
  return { texts: paths.map((path) => readText(workspace, path, room)) };
}

function readText(workspace: Workspace, path: string, room: Buffer): FileText {
  try {
    const { fd } = workspace.openFile(path);
    try {
      const bytes = room.subarray(0, fill(fd, room));
      if (bytes.length === room.length) return { missing: "large" };
      const decoded = decodeText(bytes, { isCut: false });
      return decoded === undefined ? { missing: "binary" } : { text: decoded.text };
    } finally {
      closeSync(fd);
    }
  } catch {
    // It was removed, is not a regular file, or cannot be read.
    return { missing: "gone" };
  }
}

function fill(fd: number, room: Buffer): number {
  let done = 0;
  while (done < room.length) {
    const count = readSync(fd, room, done, room.length - done, done);
    if (count === 0) break;
    done += count;
  }
  return done;
}
