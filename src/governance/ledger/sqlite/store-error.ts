import { isOwlError, OwlError } from "../../../errors/owl-error.ts";

const REASONS: readonly (readonly [RegExp, string, string])[] = [
  [/SQLITE_FULL|disk is full|ENOSPC/i, "the disk is full", "Free space on the disk of the data folder."],
  [
    /SQLITE_READONLY|SQLITE_PERM|SQLITE_CANTOPEN|readonly|EACCES|EROFS|unable to open/i,
    "it cannot be opened for writing",
    "Give the server's user the right to write to the file and its folder.",
  ],
  [
    /SQLITE_CORRUPT|SQLITE_NOTADB|malformed|not a database/i,
    "the file is damaged",
    "Run `owlclaw mcp-server ledger verify`, then put a backup back or move the file away while the server is stopped.",
  ],
  [/SQLITE_BUSY|SQLITE_LOCKED|is locked/i, "another process holds its lock", "Find the process that keeps it locked."],
];

/** Whether somebody else holds the lock that a write needs. Nothing was done then. */
export function isLocked(thrown: unknown): boolean {
  const error = isOwlError(thrown) ? thrown.cause : thrown;
  return error instanceof Error && "code" in error && error.code === "SQLITE_BUSY";
}

/** Whatever the database says, as one kind of error that names the cause and the way out. */
export function storeError(thrown: unknown, path: string): OwlError {
  if (isOwlError(thrown)) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
  const [, reason, hint] = REASONS.find(([pattern]) => pattern.test(`${code} ${message}`)) ?? [];
  return new OwlError("store_unavailable", `the ledger ${path} cannot be used: ${reason ?? message}`, {
    cause: thrown,
    ...(hint === undefined ? {} : { hint }),
  });
}
