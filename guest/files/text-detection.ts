const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

export interface DecodedText {
  readonly text: string;
  readonly hasBom: boolean;
}

/** The bytes as text, or nothing where they are none. `isCut`: the last character may be incomplete and is then left out. */
export function decodeText(bytes: Buffer, { isCut }: { readonly isCut: boolean }): DecodedText | undefined {
  if (bytes.includes(0)) return undefined;
  const hasBom = bytes.subarray(0, 3).equals(BOM);
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes, { stream: isCut });
    return { text, hasBom };
  } catch {
    return undefined;
  }
}

/** A first look at a file, as ripgrep and git do: text has no NUL. */
export function looksBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, 8_192).includes(0);
}

export function withBom(content: Buffer): Buffer {
  return Buffer.concat([BOM, content]);
}
