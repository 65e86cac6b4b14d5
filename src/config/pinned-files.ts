import { existsSync, realpathSync, statSync } from "node:fs";
import type { ConfigIssue } from "./config-error.ts";
import { isBelow, type PlannedVolume } from "./plan-volumes.ts";

/** Files of settings in folders that sandboxes may write, and which file each was at the first load. */
export type Pins = ReadonlyMap<string, string>;

export function pinsOf(files: readonly string[], volumes: readonly PlannedVolume[]): Pins {
  const folders = volumes.filter(({ isReadOnly }) => !isReadOnly).map(({ hostPath }) => hostPath);
  const inside = files.filter(
    (file) => existsSync(file) && folders.some((folder) => isBelow(realpathSync(file), folder)),
  );
  return new Map(inside.map((file) => [file, identityOf(file)]));
}

/**
 * The read-only mount ends with the file that it covered. Until the server notices the replacement, a sandbox
 * can write to the new file. A change inside the mounted file can only come from the host.
 */
export function replacedFiles(pins: Pins, now: Pins): readonly ConfigIssue[] {
  const unprotected = [...now.keys()].filter((file) => !pins.has(file));
  const replaced = [...pins].filter(([file, identity]) => identityOf(file) !== identity).map(([file]) => file);
  return [
    ...unprotected.map((file) =>
      issueOf(file, "it lies in a folder that sandboxes may write, and is protected only from the next start on"),
    ),
    ...replaced.map((file) =>
      issueOf(
        file,
        "it was replaced by another file in a folder that sandboxes may write, so a sandbox may have changed it",
      ),
    ),
  ];
}

function issueOf(file: string, reason: string): ConfigIssue {
  return {
    path: file,
    reason,
    fix: "check it and restart the server; a change inside the same file is read without a restart",
    layer: "file",
    source: file,
  };
}

function identityOf(file: string): string {
  const stats = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? "missing" : `${stats.dev}:${stats.ino}`;
}
