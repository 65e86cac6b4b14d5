import { stat } from "node:fs/promises";

/** The state of each file, by path, when it was last read or checked. */
export type FileStates = ReadonlyMap<string, string>;

/**
 * Returns a text that changes with the file, also when a link above it changes. Call it before reading the file: a
 * change in between is then detected.
 */
export async function fileState(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    // A missing or unreachable file is a state too.
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  }
}
