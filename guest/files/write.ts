import type { GuestParams, GuestResult } from "../../contract/guest.ts";
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  renameSync,
  unlinkSync,
  writeSync,
  type Stats,
} from "node:fs";
import { BadParams, errorCode, Failure, fileFailure } from "../failure.ts";
import type { Place, Workspace } from "../paths.ts";
import { refuseLoneSurrogates } from "./text-detection.ts";

const NEW_FILE_MODE = 0o644;
const PERMISSION_BITS = 0o7777;

export function writeFile(workspace: Workspace, params: GuestParams["file.write"]): GuestResult<"file.write"> {
  const content = toBytes(params);
  if (params.path.endsWith("/"))
    throw new Failure("not_a_file", `${params.path}: it names a folder`, "name a file in it");
  const place = workspace.openPlace(params.path);
  try {
    const existing = statAt(place.path);
    refuseIfUnfit(params, existing);
    const sizeBytes =
      params.mode === "append"
        ? append(place, { content, permissions: params.permissions })
        : replaceFile(place, {
            content,
            mode: params.permissions ?? (existing === undefined ? undefined : existing.mode & PERMISSION_BITS),
            mustBeNew: params.mode === "create",
          });
    return { path: params.path, bytesWritten: content.length, sizeBytes, created: existing === undefined };
  } catch (error) {
    throw fileFailure(error, params.path);
  } finally {
    place.close();
  }
}

/** Atomic: the new content is written beside the file and renamed. */
export function replaceFile(
  place: Place,
  options: { content: Buffer; mode: number | undefined; mustBeNew: boolean },
): number {
  const temporary = place.sibling(`.owlclaw-${randomBytes(9).toString("base64url")}.tmp`);
  const fd = openSync(
    temporary,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    NEW_FILE_MODE,
  );
  try {
    writeAll(fd, options.content);
    if (options.mode !== undefined) fchmodSync(fd, options.mode);
    fsyncSync(fd);
  } catch (error) {
    unlinkSync(temporary);
    throw error;
  } finally {
    closeSync(fd);
  }
  try {
    // A link fails when the name exists; a rename would replace it.
    if (options.mustBeNew) linkSync(temporary, place.path);
    else renameSync(temporary, place.path);
  } finally {
    if (options.mustBeNew || statAt(temporary) !== undefined) unlinkSync(temporary);
  }
  return options.content.length;
}

function append(place: Place, options: { content: Buffer; permissions: number | undefined }): number {
  const flags =
    constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const fd = openSync(place.path, flags, NEW_FILE_MODE);
  try {
    writeAll(fd, options.content);
    if (options.permissions !== undefined) fchmodSync(fd, options.permissions);
    return fstatSync(fd).size;
  } finally {
    closeSync(fd);
  }
}

function writeAll(fd: number, content: Buffer): void {
  for (let done = 0; done < content.length;) done += writeSync(fd, content, done);
}

function toBytes({ content, encoding }: GuestParams["file.write"]): Buffer {
  if (encoding === "utf-8") {
    refuseLoneSurrogates("content", content);
    return Buffer.from(content, "utf8");
  }
  const compact = content.replaceAll(/\s/gu, "");
  const isBase64 = /^[A-Za-z0-9+/_-]*={0,2}$/u.test(compact);
  if (!isBase64) throw new BadParams('content is no base64; for plain text use encoding "utf-8"');
  return Buffer.from(compact, "base64");
}

function refuseIfUnfit(params: GuestParams["file.write"], existing: Stats | undefined): void {
  if (existing === undefined) return;
  if (params.mode === "create") {
    throw new Failure(
      "already_exists",
      `${params.path}: it exists already`,
      "write with mode overwrite, or choose another path",
    );
  }
  if (existing.isDirectory()) throw new Failure("not_a_file", `${params.path}: it is a folder`, "name a file in it");
  if (!existing.isFile()) {
    throw new Failure(
      "not_a_file",
      `${params.path}: it is no regular file`,
      "use the shell for pipes, sockets and devices",
    );
  }
}

function statAt(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
