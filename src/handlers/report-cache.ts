import { readdir } from "node:fs/promises";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { digestOf, readCacheFile, writeCacheFile } from "./cache-file.ts";
import { type LoadInputs, stampOf } from "./load-inputs.ts";
import type { FileReport } from "./workers/worker-protocol.ts";

interface Entry {
  /** Of everything that the texts name. */
  readonly digest: string;
  /** What the worker says that the file depends on besides, each as it was. */
  readonly reads: Readonly<Record<string, string>>;
  readonly report: FileReport;
}

interface Contents {
  readonly key: string;
  readonly entries: Readonly<Record<string, Entry>>;
}

export interface LoadedReport {
  readonly file: string;
  /** From before it was loaded. */
  readonly digest: string | undefined;
  readonly report: FileReport;
}

const FILE_NAME = "handler-reports.json";
/** Whatever a worker reports is made by these, and by what they load files with. A bundle has the code of some in `chunks`. */
const OWN_CODE = ["workers", "../capability", "../chunks", "python/owlclaw"];
const COMPILER = "jiti/package.json";

/** What files brought when they were loaded, as long as all that decides it is as it was. */
export class ReportCache {
  readonly #path: string;
  readonly #key: Promise<string>;
  #contents: Promise<Contents> | undefined;

  /** `surroundings`: where and by what the files are run. */
  constructor(folder: string, surroundings: readonly string[]) {
    this.#path = join(folder, FILE_NAME);
    this.#key = ownKey(surroundings);
  }

  async find(file: string, inputs: LoadInputs): Promise<FileReport | undefined> {
    const entry = (await this.#open()).entries[file];
    if (entry === undefined || Object.entries(entry.reads).some(([path, stamp]) => stampOf(path) !== stamp))
      return undefined;
    return entry.digest === (await inputs.digestOf(file)) ? entry.report : undefined;
  }

  /** Files with a problem are loaded again at the next start: their problem may be gone, or must be told again. */
  async add(loaded: readonly LoadedReport[]): Promise<void> {
    if (loaded.length === 0) return;
    const { key, entries: before } = await this.#open();
    const entries = Object.fromEntries(Object.entries(before).filter(([file]) => existsSync(file)));
    for (const { file, digest, report } of loaded) {
      delete entries[file];
      if (digest === undefined || report.isBroken === true || report.problems.length > 0) continue;
      const reads = [...(report.dependencies ?? []), ...(report.reads ?? [])];
      entries[file] = { digest, report, reads: Object.fromEntries(reads.map((path) => [path, stampOf(path)])) };
    }
    this.#contents = Promise.resolve({ key, entries });
    await writeCacheFile(this.#path, { key, entries } satisfies Contents);
  }

  /** A cache that is absent, broken or made by another version is an empty one. */
  #open(): Promise<Contents> {
    return (this.#contents ??= this.#read());
  }

  async #read(): Promise<Contents> {
    const [key, contents] = await Promise.all([this.#key, readCacheFile(this.#path)]);
    return isContents(contents) && contents.key === key ? contents : { key, entries: {} };
  }
}

function isContents(value: unknown): value is Contents {
  return typeof value === "object" && value !== null && "key" in value && "entries" in value;
}

/** Changes with Node and with every file that loads handlers: nobody has to remember to count a version up. */
async function ownKey(surroundings: readonly string[]): Promise<string> {
  const compiler = createRequire(import.meta.url).resolve(COMPILER);
  const folders = OWN_CODE.map((folder) => join(import.meta.dirname, folder));
  const names = await Promise.all(
    folders.map(async (folder) =>
      (await readdir(folder).catch((): string[] => [])).sort().map((name) => join(folder, name)),
    ),
  );
  const own = names.flat().filter((path) => /\.(?:[jt]s|py)$/.test(path));
  const stamps = [compiler, ...own].map((path) => `${path} ${stampOf(path)}`);
  return digestOf([process.version, ...surroundings, ...stamps].join("\n"));
}
