import type { GuestParams, TextEncoding } from "../../contract/guest.ts";
import { decodeText, type DecodeOptions } from "./text-detection.ts";

/** Of a character in UTF-8. */
export const CHARACTER_BYTES_MAX = 4;

interface PartOptions {
  readonly encoding: GuestParams["file.read"]["encoding"];
  readonly offset: number;
  readonly wantedBytes: number;
  /** The caller said how long; otherwise it is a limit of ours. */
  readonly isByCaller: boolean;
}

/** What is shown of the bytes that were read, and which of them it is. */
interface Part {
  readonly encoding: TextEncoding | "base64";
  readonly content: string;
  readonly startsAt: number;
  readonly endsAt: number;
}

/**
 * A part of a text has the characters that start in it, whole: one part after the other, no character is lost. `bytes`
 * has a few more than wanted for that. Nothing, if it should be text and is not.
 */
export function partOf(bytes: Buffer, options: PartOptions): Part | undefined {
  const { encoding, wantedBytes } = options;
  if (encoding === "latin1" || encoding === "utf-16le") return textPart(bytes, { ...options, encoding });
  const utf8 = encoding === "base64" ? undefined : utf8Part(bytes, options);
  if (utf8 !== undefined || encoding === "utf-8") return utf8;
  const endsAt = Math.min(wantedBytes, bytes.length);
  const content = bytes.subarray(0, endsAt).toString("base64");
  return { encoding: "base64", content, startsAt: 0, endsAt };
}

export function decodeAs(encoding: TextEncoding, bytes: Buffer, options: DecodeOptions): string | undefined {
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

/** These have no bytes that say where a character starts: of two bytes, every even one does. */
function textPart(bytes: Buffer, options: PartOptions & { readonly encoding: TextEncoding }): Part | undefined {
  const { encoding, offset, wantedBytes } = options;
  const width = encoding === "latin1" ? 1 : 2;
  const startsAt = offset % width;
  const wholeBytes = Math.ceil((Math.min(wantedBytes, bytes.length) - startsAt) / width) * width;
  const endsAt = Math.min(bytes.length, startsAt + wholeBytes);
  const content = decodeAs(encoding, bytes.subarray(startsAt, endsAt), { isCut: false, isFromStart: offset === 0 });
  return content === undefined ? undefined : { encoding, content, startsAt, endsAt };
}

/** `at`, or where the next character starts if `at` is within one. */
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
