import type { GuestFailure } from "../contract/guest.ts";

const READ_ONLY_HINT =
  "write to another path: what the server itself is configured with cannot be changed from a sandbox";

/** A failure that the caller can repair. */
export class Failure extends Error {
  readonly data: GuestFailure;

  constructor(kind: GuestFailure["kind"], message: string, hint: string) {
    super(message);
    this.data = { kind, message, hint };
  }
}

/** Parameters that the guest cannot use. */
export class BadParams extends Error {}

const BY_ERRNO: Readonly<Record<string, readonly [kind: GuestFailure["kind"], reason: string, hint: string]>> = {
  ENOENT: ["not_found", "no such file or folder", "list the folder to see what is there"],
  ENOTDIR: ["not_a_directory", "a part of the path is a file", "list the parent folder to see what is there"],
  EISDIR: ["not_a_file", "it is a folder", "list it, or name a file in it"],
  EEXIST: ["already_exists", "it exists already", "write with mode overwrite, or choose another path"],
  EACCES: ["permission_denied", "permission denied", "choose a path that you own, or change its permissions first"],
  EPERM: ["permission_denied", "not permitted", "choose a path that you own, or change its permissions first"],
  EROFS: ["permission_denied", "it is read-only here", READ_ONLY_HINT],
  // A protected file is a mount point: it cannot be renamed or replaced.
  EBUSY: ["permission_denied", "it is read-only here", READ_ONLY_HINT],
  // It belongs to a user that does not exist in the sandbox.
  EOVERFLOW: ["permission_denied", "it belongs to another user of the machine", "choose a path that you own"],
  ENOSPC: ["disk_full", "the disk quota is used up", "delete files that are no longer needed, then try again"],
  EDQUOT: ["disk_full", "the disk quota is used up", "delete files that are no longer needed, then try again"],
  EFBIG: ["disk_full", "the file would be too large", "write less, or to several files"],
  ENAMETOOLONG: ["not_found", "the name is too long", "use a path whose parts have at most 255 bytes"],
  ELOOP: ["outside_workspace", "symbolic links that lead nowhere", "name the file itself"],
  ENXIO: ["not_a_file", "it is no regular file", "use the shell for pipes, sockets and devices"],
};

/** What the system said about `path`, in words that help. Errors that are no file errors come back as they are. */
export function fileFailure(error: unknown, path: string): unknown {
  if (!(error instanceof Error) || error instanceof Failure) return error;
  const known = BY_ERRNO[errorCode(error) ?? ""];
  if (known === undefined) return error;
  const [kind, reason, hint] = known;
  return new Failure(kind, `${path}: ${reason}`, hint);
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
