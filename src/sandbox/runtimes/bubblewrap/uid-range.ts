import { randomInt } from "node:crypto";
import { mkdir, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { OwlError } from "../../../errors/owl-error.ts";
import { hasCode } from "../host-files.ts";

/** Above the ids of systemd and container tools, below the maximum of signed 32-bit ids. */
const FIRST_UID = 1_900_000_000;
const UID_COUNT = 100_000_000;
const ATTEMPTS = 100;
const UID_FILE = "uid";

/**
 * User ids, one for each workspace: an instance that escapes cannot access files or processes of another. They are random in a
 * wide range, so that servers with different data folders do not collide.
 */
export interface UidRange {
  /** Calls `note` before it takes the id, so that another server can release it after a crash. */
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

/** The user id of the workspace in an instance's folder. */
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
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}
