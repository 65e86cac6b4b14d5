import { existsSync, realpathSync } from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { join, dirname, sep } from "node:path";
import { CacheFile, codeKey, digestOf, stampOf } from "./cache-file.ts";
import type { FileReport } from "./workers/worker-protocol.ts";
import type { SourceTexts } from "./source-texts.ts";

interface Entry {
  /** Of the sources, and of what they name. */
  readonly digest: string;
  /** The stamps of further files that the worker reported as read. */
  readonly reads: Readonly<Record<string, string>>;
  readonly report: FileReport;
}

interface Contents {
  readonly entries: Readonly<Record<string, Entry>>;
}

export interface LoadedReport {
  readonly file: string;
  /** Taken before it was loaded. */
  readonly digest: string | undefined;
  readonly report: FileReport;
}

const FILE_NAME = "handler-reports.json";
/** The code that makes reports. In a bundle, some of it is in `chunks`. */
const OWN_CODE = ["workers", "../capability", "../chunks", "python/owlclaw"];
const COMPILER = "jiti/package.json";

/** Reports of loaded files. A report is used while everything that it depends on is unchanged. */
export class ReportCache {
  readonly #file: CacheFile<Contents>;
  #contents: Promise<Contents> | undefined;

  /** `surroundings`: how and where the files are run. */
  constructor(folder: string, surroundings: readonly string[]) {
    const compiler = createRequire(import.meta.url).resolve(COMPILER);
    const folders = OWN_CODE.map((name) => join(import.meta.dirname, name));
    const key = codeKey(folders, [...surroundings, stampOf(compiler)]);
    this.#file = new CacheFile<Contents>(join(folder, FILE_NAME), key, { entries: {} });
  }

  async find(file: string, inputs: ImportInputs): Promise<FileReport | undefined> {
    const entry = (await this.#open()).entries[file];
    if (entry === undefined || Object.entries(entry.reads).some(([path, stamp]) => stampOf(path) !== stamp))
      return undefined;
    return entry.digest === (await inputs.digestOf(file)) ? entry.report : undefined;
  }

  /** A file with a problem is loaded again at the next start: the problem may be fixed, or must be reported again. */
  async add(loaded: readonly LoadedReport[]): Promise<void> {
    if (loaded.length === 0) return;
    const { entries: before } = await this.#open();
    const entries = Object.fromEntries(Object.entries(before).filter(([file]) => existsSync(file)));
    for (const { file, digest, report } of loaded) {
      delete entries[file];
      if (digest === undefined || report.isBroken === true || report.problems.length > 0) continue;
      const reads = [...(report.dependencies ?? []), ...(report.reads ?? [])];
      entries[file] = { digest, report, reads: Object.fromEntries(reads.map((path) => [path, stampOf(path)])) };
    }
    this.#contents = Promise.resolve({ entries });
    await this.#file.write({ entries });
  }

  #open(): Promise<Contents> {
    return (this.#contents ??= this.#file.read());
  }
}

/** Imports whose module is computed. */
const COMPUTED_IMPORT = /\b(?:import|require)\s*\(\s*[^"'\s)]/;
/** String literals that may name a data file, as in `readFileSync(join(import.meta.dirname, "prices.json"))`. */
const DATA_FILE = /["'`]((?:\.{1,2}\/)?[\w@-][\w@./-]*\.[a-z]\w{0,7})["'`]/g;
/** Files that package managers write at every change. */
const INSTALL_MARKS = [".package-lock.json", ".modules.yaml", ".yarn-integrity", ".yarn-state.yml"];

interface LoadInputsOptions {
  readonly texts: SourceTexts;
  /** The environment of the processes that load the files. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** A digest of everything that determines a file's report, as far as the sources show. What the code reads at run time is not included. */
export class ImportInputs {
  readonly #options: LoadInputsOptions;
  readonly #parts = new Map<string, Promise<string | undefined>>();
  readonly #packages = new Map<string, string | undefined>();

  constructor(options: LoadInputsOptions) {
    this.#options = options;
  }

  /** Undefined when the sources do not show what a file depends on. */
  async digestOf(file: string): Promise<string | undefined> {
    const { texts } = this.#options;
    const paths = [file, ...[...(await texts.importsOf(file))].sort()];
    const parts: string[] = [];
    for (const path of paths) {
      const part = await this.#partOf(path);
      if (part === undefined) return undefined;
      parts.push(part);
    }
    return digestOf(parts.join("\n"));
  }

  #partOf(path: string): Promise<string | undefined> {
    let part = this.#parts.get(path);
    if (part === undefined) {
      part = this.#describe(path);
      this.#parts.set(path, part);
    }
    return part;
  }

  async #describe(path: string): Promise<string | undefined> {
    const { texts, environment } = this.#options;
    const text = await texts.read(path);
    if (text === undefined || (!path.endsWith(".py") && COMPUTED_IMPORT.test(text))) return undefined;
    const packages: string[] = [];
    for (const name of (await texts.importsIn(path)).names) {
      const state = this.#packageState(dirname(path), name);
      if (state === undefined) return undefined;
      packages.push(state);
    }
    return JSON.stringify([path, text, packages, dataFiles(path, text), variablesIn(text, environment)]);
  }

  /** Undefined for a package that is not below node_modules, such as a linked folder: its files may be edited. */
  #packageState(folder: string, specifier: string): string | undefined {
    if (isBuiltin(specifier)) return "";
    // Depends on the surrounding package (`#internal`), or is a URL or an absolute path.
    if (/^[#/]|^\w+:/.test(specifier)) return undefined;
    const name = specifier
      .split("/")
      .slice(0, specifier.startsWith("@") ? 2 : 1)
      .join("/");
    const key = `${folder}\0${name}`;
    if (!this.#packages.has(key)) this.#packages.set(key, findPackage(folder, name));
    return this.#packages.get(key);
  }
}

function findPackage(start: string, name: string): string | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    const modules = join(folder, "node_modules");
    const folderOfPackage = join(modules, name);
    if (stampOf(folderOfPackage) !== "") {
      if (!realpathSync(folderOfPackage).includes(`${sep}node_modules${sep}`)) return undefined;
      return [join(folderOfPackage, "package.json"), ...INSTALL_MARKS.map((mark) => join(modules, mark))]
        .map(stampOf)
        .join(" ");
    }
    // Type imports, text that looks like an import, or "owlclaw" itself: not installed anywhere, and loaded all the same.
    if (dirname(folder) === folder) return "nowhere";
  }
}

/** Files beside the code that its text names. */
function dataFiles(path: string, text: string): readonly string[] {
  const names = new Set([...text.matchAll(DATA_FILE)].map(([, name = ""]) => name));
  return [...names].flatMap((name) => {
    const stamp = stampOf(join(dirname(path), name));
    return stamp === "" ? [] : [`${name} ${stamp}`];
  });
}

/** Environment variables that the text names. */
function variablesIn(text: string, environment: LoadInputsOptions["environment"]): readonly string[] {
  if (!/env/i.test(text)) return [];
  const words = new Set(text.match(/\w+/g));
  return Object.entries(environment)
    .filter(([name]) => words.has(name))
    .map(([name, value = ""]) => `${name}=${value}`)
    .sort();
}
