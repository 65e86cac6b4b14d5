import { lstatSync, statSync } from "node:fs";
import { dirname } from "node:path";

const WRITABLE_FOR_ALL = 0o002;
const ROOT_UID = 0;

/**
 * Who owns the data folder can replace the keys, the ledger and the code in it. In a folder where every user may make files, such as
 * /tmp, another user may have made it first. Root may use a folder of another user elsewhere, as with `sudo`. @throws Error with the reason.
 */
export function assertOwnFolder(path: string): void {
  const uid = process.getuid?.();
  const entry = lstatSync(path, { throwIfNoEntry: false });
  if (uid === undefined || entry === undefined) return;
  const isTrusted = (owner: number): boolean => owner === uid || owner === ROOT_UID;
  if (entry.isSymbolicLink() && !isTrusted(entry.uid))
    throw new Error(`it is a link that another user made (uid ${entry.uid})`);
  const folder = statSync(path, { throwIfNoEntry: false });
  if (folder === undefined || isTrusted(folder.uid)) return;
  const isShared = (statSync(dirname(path)).mode & WRITABLE_FOR_ALL) !== 0;
  if (isShared || uid !== ROOT_UID)
    throw new Error(`it belongs to another user (uid ${folder.uid}), who could replace keys and records`);
}
