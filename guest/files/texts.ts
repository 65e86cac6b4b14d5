import type { FileText, GuestParams, GuestResult } from "../../contract/guest.ts";
import { closeSync, readSync } from "node:fs";
import type { Workspace } from "../paths.ts";
import { decodeText } from "./text-detection.ts";

/** Many small files at once. One that cannot be read does not stand in the way of the others. */
export function readTexts(
  workspace: Workspace,
  { paths, maxBytes }: GuestParams["file.texts"],
): GuestResult<"file.texts"> {
  // A byte more than wanted tells that a file is larger, whatever its size was said to be.
  const room = Buffer.allocUnsafe(maxBytes + 1);
  return { texts: paths.map((path) => readText(workspace, path, room)) };
}

function readText(workspace: Workspace, path: string, room: Buffer): FileText {
  try {
    const { fd } = workspace.openFile(path);
    try {
      const bytes = room.subarray(0, fill(fd, room));
      if (bytes.length === room.length) return { missing: "large" };
      const decoded = decodeText(bytes, { isCut: false });
      return decoded === undefined ? { missing: "binary" } : { text: decoded.text };
    } finally {
      closeSync(fd);
    }
  } catch {
    // It was removed, is no file any more, or may not be read.
    return { missing: "gone" };
  }
}

function fill(fd: number, room: Buffer): number {
  let done = 0;
  while (done < room.length) {
    const count = readSync(fd, room, done, room.length - done, done);
    if (count === 0) break;
    done += count;
  }
  return done;
}
