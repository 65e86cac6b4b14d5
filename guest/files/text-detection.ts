import { BadParams } from "../failure.ts";

const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

interface DecodedText {
  readonly text: string;
  readonly hasBom: boolean;
}

export interface DecodeOptions {
  /** An incomplete last character is dropped. */
  readonly isCut: boolean;
  /** Only at the start of a file three bytes are a byte order mark. */
  readonly isFromStart?: boolean;
}

/** The bytes as text; `undefined` when they are not text. */
export function decodeText(bytes: Buffer, { isCut, isFromStart = true }: DecodeOptions): DecodedText | undefined {
  if (bytes.includes(0)) return undefined;
  const hasBom = isFromStart && bytes.subarray(0, 3).equals(BOM);
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: !isFromStart }).decode(bytes, { stream: isCut });
    return { text, hasBom };
  } catch {
    return undefined;
  }
}

/** The check of ripgrep and git: text has no NUL. */
export function looksBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, 8_192).includes(0);
}

/** Half of a surrogate pair cannot be encoded: the file would get a replacement character. */
export function refuseLoneSurrogates(name: string, text: string): void {
  const at = text.search(/\p{Surrogate}/u);
  if (at === -1) return;
  const code = text.charCodeAt(at).toString(16);
  throw new BadParams(
    `${name} has half a surrogate pair (\\u${code}) as its character ${at + 1}: write the whole pair, or the bytes with encoding base64`,
  );
}

export function withBom(content: Buffer): Buffer {
  return Buffer.concat([BOM, content]);
}
