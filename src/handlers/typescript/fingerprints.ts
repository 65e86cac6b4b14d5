import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";

export interface Fingerprint {
  readonly mtimeMs: number;
  /** Nobody can set it back. */
  readonly ctimeMs: number;
  readonly size: number;
  readonly sha256: string;
  /** Before the file was read. */
  readonly recordedAtMs: number;
}

/** Clocks of file systems are coarse: a file that changed this short before it was recorded may have changed again unseen. */
const SETTLED_MS = 2000;

/** What files looked like when they were read, and whether they still do. Asks each path once. */
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
      // Gone, or not ours to read: what was recorded no longer holds.
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

/** Far more than any source that a person writes. */
const MAX_BYTES = 64 * 1024 * 1024;

/** A project may name a FIFO, a device, or a link to one, whose reading would not end. @throws Error for these, and for what is not there. */
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
