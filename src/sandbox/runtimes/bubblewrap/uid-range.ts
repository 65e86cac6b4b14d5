import { randomInt } from "node:crypto";
import { mkdir, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { OwlError } from "../../../errors/owl-error.ts";

/** Above what systemd and container tools hand out, below what 32-bit signed ids can hold. */
const FIRST_UID = 1_900_000_000;
const UID_COUNT = 100_000_000;
const ATTEMPTS = 100;
const UID_FILE = "uid";

/**
 * User ids for cells, one each, so that no cell can touch another's files or processes even when it escapes. Taken at
 * random from a wide range: servers with different data folders do not meet.
 */
export interface UidRange {
  /** Notes the id before it is taken: a server that dies in between leaves none that nobody knows of. */
  take(note: (uid: number) => Promise<void>): Promise<number>;
  release(uid: number): Promise<void>;
  taken(): Promise<number[]>;
}

export function createUidRange(folder: string): UidRange {
  return {
    take: async (note) => {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
        const uid = FIRST_UID + randomInt(UID_COUNT);
        await note(uid);
        if (await claim(join(folder, String(uid)))) return uid;
      }
      throw new OwlError("resource_limit", "no user id is free for another sandbox");
    },
    release: async (uid) => await rm(join(folder, String(uid)), { force: true }),
    taken: async () => (await readdir(folder).catch(() => [])).map(Number).filter(isInstanceUid),
  };
}

/** The id of the workspace in a cell's folder, which it keeps for as long as the folder exists. */
export async function readUid(folder: string): Promise<number | undefined> {
  const uid = Number(await readFile(join(folder, UID_FILE), "utf8").catch(() => ""));
  return isInstanceUid(uid) ? uid : undefined;
}

export async function noteUid(folder: string, uid: number): Promise<void> {
  await writeFile(join(folder, UID_FILE), String(uid), { mode: 0o600 });
}

function isInstanceUid(uid: number): boolean {
  return Number.isInteger(uid) && uid >= FIRST_UID && uid < FIRST_UID + UID_COUNT;
}

async function claim(path: string): Promise<boolean> {
  try {
    await (await open(path, "wx", 0o600)).close();
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}
