import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";

export interface Fingerprint {
  readonly mtimeMs: number;
  /** Unlike mtime, it cannot be set by a program. */
  readonly ctimeMs: number;
  readonly size: number;
  readonly sha256: string;
  /** Taken before the file was read. */
  readonly recordedAtMs: number;
}

/** Timestamps are coarse: a file that changed this shortly before it was recorded may have changed again with the same time. */
const SETTLED_MS = 2000;

/** Compares files with their recorded fingerprints. Each path is checked once. */
export class Fingerprints {
  readonly #recorded: Readonly<Record<string, Fingerprint>>;
  readonly #unchanged = new Map<string, Promise<boolean>>();
  readonly #there = new Map<string, Promise<boolean>>();

  constructor(recorded: Readonly<Record<string, Fingerprint>>) {
    this.#recorded = recorded;
  }

  async isUnchanged(path: string): Promise<boolean> {
    const asked = this.#unchanged.get(path) ?? this.#compare(path);
    this.#unchanged.set(path, asked);
    return await asked;
  }

  async isThere(path: string): Promise<boolean> {
    const asked = this.#there.get(path) ?? isFile(path);
    this.#there.set(path, asked);
    return await asked;
  }

  async #compare(path: string): Promise<boolean> {
    const before = this.#recorded[path];
    if (before === undefined) return false;
    try {
      const found = await stat(path);
      const { mtimeMs, ctimeMs, size } = found;
      if (!found.isFile() || size !== before.size) return false;
      const isSettled = Math.max(mtimeMs, ctimeMs) < before.recordedAtMs - SETTLED_MS;
      if (isSettled && mtimeMs === before.mtimeMs && ctimeMs === before.ctimeMs) return true;
      const bytes = readRegularFile(path);
      return createHash("sha256").update(bytes).digest("base64url") === before.sha256;
    } catch {
      // Removed or not readable: the recorded fingerprint is outdated.
      return false;
    }
  }
}

export async function takeFingerprint(
  path: string,
  { sha256, recordedAtMs }: Pick<Fingerprint, "sha256" | "recordedAtMs">,
): Promise<Fingerprint | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return undefined;
  return { mtimeMs: found.mtimeMs, ctimeMs: found.ctimeMs, size: found.size, sha256, recordedAtMs };
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() ?? false;
}

const MAX_BYTES = 64 * 1024 * 1024;

/** The path may be a FIFO or a device, whose read would block. @throws Error for these, and for a missing file. */
export function readRegularFile(path: string): Buffer {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile()) throw new Error(`${path} is not a regular file`);
    if (found.size > MAX_BYTES) throw new Error(`${path} is larger than ${MAX_BYTES} bytes`);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
