import { chownSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const NOBODY = 65_534;
const MEMORY_DISK = "/dev/shm";

/** Whom a service runs as: databases refuse to run as root. */
export interface ServiceUser {
  readonly uid?: number;
  readonly gid?: number;
}

export interface PrivateFolder {
  readonly path: string;
  readonly user: ServiceUser;
  remove(): void;
}

/** For services that sync what they write: the real disk is busy with other tests, and one that is killed loses as little here. */
export function memoryDisk(): string {
  return existsSync(MEMORY_DISK) ? MEMORY_DISK : tmpdir();
}

/** A folder for one service of one test file, owned by the unprivileged user that the service runs as. */
export function privateFolder(name: string, place: string = tmpdir()): PrivateFolder {
  const path = mkdtempSync(join(place, `owlclaw-${name}-`));
  const isRoot = process.getuid?.() === 0;
  if (isRoot) chownSync(path, NOBODY, NOBODY);
  return {
    path,
    user: isRoot ? { uid: NOBODY, gid: NOBODY } : {},
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}
