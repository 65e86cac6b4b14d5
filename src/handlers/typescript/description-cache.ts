import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { CacheFile, codeKey, stampOf, readRegularFile } from "../cache-file.ts";
import type { ExtractAnswer, ExtractedFile } from "./run-compiler.ts";
import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";

interface Contents {
  readonly fingerprints: Readonly<Record<string, Fingerprint>>;
  readonly entries: Readonly<Record<string, ExtractedFile>>;
}

const FILE_NAME = "typescript-handlers.json";

/** Extracted descriptions. An entry is used while every file that it depends on is unchanged. */
export class DescriptionCache {
  readonly #file: CacheFile<Contents>;
  readonly #contents: Contents;
  readonly #fingerprints: Fingerprints;

  private constructor(file: CacheFile<Contents>, contents: Contents) {
    this.#file = file;
    this.#contents = contents;
    this.#fingerprints = new Fingerprints(contents.fingerprints);
  }

  static async open(folder: string): Promise<DescriptionCache> {
    const compiler = createRequire(import.meta.url).resolve("typescript-6");
    const key = codeKey([import.meta.dirname], [stampOf(compiler)]);
    const file = new CacheFile<Contents>(join(folder, FILE_NAME), key, { fingerprints: {}, entries: {} });
    return new DescriptionCache(file, await file.read());
  }

  async find(file: string): Promise<ExtractedFile | undefined> {
    const entry = this.#contents.entries[file];
    if (entry === undefined) return undefined;
    const unchanged = await Promise.all(
      [file, ...entry.dependencies].map((path) => this.#fingerprints.isUnchanged(path)),
    );
    if (!unchanged.every(Boolean)) return undefined;
    const appeared = await Promise.all(entry.missing.map((path) => this.#fingerprints.isThere(path)));
    return appeared.some(Boolean) ? undefined : entry;
  }

  /** `recordedAtMs`: when the compiler was started. */
  async add({ extracted, digests }: ExtractAnswer, recordedAtMs: number): Promise<void> {
    const fresh = Object.fromEntries(extracted.map((entry) => [entry.file, entry]));
    const kept = Object.entries(this.#contents.entries).filter(([file]) => existsSync(file));
    const entries = { ...Object.fromEntries(kept), ...fresh };
    const paths = new Set(Object.values(entries).flatMap(({ file, dependencies }) => [file, ...dependencies]));
    const fingerprints: Record<string, Fingerprint> = {};
    for (const path of paths) {
      const digest = digests[path];
      const before = this.#contents.fingerprints[path];
      const found = digest === undefined ? before : await takeFingerprint(path, { sha256: digest, recordedAtMs });
      if (found !== undefined) fingerprints[path] = found;
    }
    await this.#file.write({ fingerprints, entries });
  }
}

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
