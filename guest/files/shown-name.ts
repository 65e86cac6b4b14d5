import { isUtf8 } from "node:buffer";

/** A file's name as text. Of one that is no UTF-8, bytes that are no ASCII are shown as in `\xe9`. */
export function shownName(name: Buffer): string {
  if (isUtf8(name)) return name.toString("utf8");
  return name.toString("latin1").replaceAll(/[^\0-\x7F]/gu, (byte) => `\\x${byte.charCodeAt(0).toString(16)}`);
}
