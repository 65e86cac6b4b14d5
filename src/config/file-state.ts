import { stat } from "node:fs/promises";

/** Paths, and what each file was when it was read or last looked at. */
export type FileStates = ReadonlyMap<string, string>;

/** Differs when the file does, also by a link above it. To be taken before the file is read: what changes in between is then seen. */
export async function fileState(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    // No file is a state as well, and so is one that cannot be reached.
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  }
}
