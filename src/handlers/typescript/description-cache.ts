import { existsSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { digestOf, readCacheFile, writeCacheFile } from "../cache-file.ts";
import type { ExtractAnswer, ExtractedFile } from "./run-compiler.ts";
import { type Fingerprint, Fingerprints, takeFingerprint } from "./fingerprints.ts";

interface Contents {
  readonly key: string;
  readonly fingerprints: Readonly<Record<string, Fingerprint>>;
  readonly entries: Readonly<Record<string, ExtractedFile>>;
}

const FILE_NAME = "typescript-handlers.json";

/** Extracted descriptions. An entry is used while every file that it depends on is unchanged. */
export class DescriptionCache {
  readonly #path: string;
  readonly #contents: Contents;
  readonly #fingerprints: Fingerprints;

  private constructor(path: string, contents: Contents) {
    this.#path = path;
    this.#contents = contents;
    this.#fingerprints = new Fingerprints(contents.fingerprints);
  }

  /** A cache that is absent, damaged or from another version is treated as empty. */
  static async open(folder: string): Promise<DescriptionCache> {
    const key = await extractorKey();
    const path = join(folder, FILE_NAME);
    const contents = await readCacheFile(path);
    const empty: Contents = { key, fingerprints: {}, entries: {} };
    return new DescriptionCache(path, isContents(contents) && contents.key === key ? contents : empty);
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
    await writeCacheFile(this.#path, { key: this.#contents.key, fingerprints, entries } satisfies Contents);
  }
}

function isContents(value: unknown): value is Contents {
  return typeof value === "object" && value !== null && "key" in value && "entries" in value && "fingerprints" in value;
}

/** Changes with the compiler and with the files of this folder, so that no version number must be maintained. */
async function extractorKey(): Promise<string> {
  const compiler = await stat(createRequire(import.meta.url).resolve("typescript-6"));
  const folder = import.meta.dirname;
  const names = (await readdir(folder)).filter((name) => /\.[jt]s$/.test(name)).sort();
  const own = await Promise.all(
    names.map(async (name) => {
      const { mtimeMs, size } = await stat(join(folder, name));
      return `${name} ${mtimeMs} ${size}`;
    }),
  );
  return digestOf([String(compiler.mtimeMs), String(compiler.size), process.version, ...own].join("\n"));
}
