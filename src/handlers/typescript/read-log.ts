import { createHash } from "node:crypto";
import { compiler } from "./compiler.ts";
import { readRegularFile } from "./read-regular-file.ts";

/** Reads files and remembers the digest of exactly what was read: a file that changes meanwhile is noticed later. */
export class ReadLog {
  readonly digests: Record<string, string> = {};

  readonly read = (path: string): string | undefined => {
    try {
      const bytes = readRegularFile(path);
      this.digests[path] = createHash("sha256").update(bytes).digest("base64url");
      // UTF-16 is the compiler's own business.
      const isUtf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
      return isUtf16 ? compiler.sys.readFile(path) : bytes.toString("utf8").replace(/^\uFEFF/, "");
    } catch {
      // The compiler asks for files that are not there as a matter of course.
      return undefined;
    }
  };
}
