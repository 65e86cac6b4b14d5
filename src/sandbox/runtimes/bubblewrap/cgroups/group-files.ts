import { mkdir, readFile, writeFile } from "node:fs/promises";

export async function readCount(file: string): Promise<number> {
  // Gone together with the cell: then nothing is used.
  const text = await readFile(file, "utf8").catch(() => "0");
  return Number.parseInt(text, 10) || 0;
}

/** A number of a file with `name value` lines. */
export async function readFieldOf(file: string, name: string): Promise<number> {
  const text = await readFile(file, "utf8").catch(() => "");
  for (const line of text.split("\n")) {
    const [field, value] = line.split(" ");
    if (field === name) return Number.parseInt(value ?? "0", 10) || 0;
  }
  return 0;
}

export async function writeIfPresent(file: string, value: string): Promise<void> {
  try {
    await writeFile(file, value, { flag: "r+" });
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** Below a group that is there. */
export async function makeGroup(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (error) {
    if (!hasCode(error, ["EEXIST"])) throw error;
  }
}

/** Whether the machine does not let us, as opposed to what may go better the next time. */
export function isRefused(error: unknown): boolean {
  return hasCode(error, ["EACCES", "EPERM", "EROFS"]);
}

export function isMissing(error: unknown): boolean {
  return hasCode(error, ["ENOENT", "EOPNOTSUPP"]);
}

function hasCode(error: unknown, codes: readonly unknown[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(error.code);
}
