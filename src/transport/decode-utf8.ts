import { OwlError } from "../errors/owl-error.ts";

const strict = new TextDecoder("utf-8", { fatal: true });
const lenient = new TextDecoder("utf-8");

/** Throws a parse error that says where the first character is that cannot be read. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return strict.decode(bytes);
  } catch {
    const position = Math.max(lenient.decode(bytes).indexOf("\uFFFD"), 0);
    throw new OwlError("parse_error", `the text is not valid UTF-8 at character ${position}`, { facts: { position } });
  }
}
