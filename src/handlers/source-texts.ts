import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, sep } from "node:path";

const CODE = /\.(?:m?[jt]s|py)$/;
const DECLARATIONS = /\.d\.m?ts$/;
const IMPORT = /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)["']([^"'\n]+)["']/g;
const ENDINGS = ["", ".ts", ".mts", ".js", ".mjs", ".json", "/index.ts", "/index.js"];

/** The imports in a script's text. False positives do no harm. */
interface NamedImports {
  /** Relative imports of files that exist. */
  readonly files: readonly string[];
  /** Packages and everything else. */
  readonly names: readonly string[];
}

/** The texts of files at one moment: each file is read once. */
export class SourceTexts {
  readonly #texts = new Map<string, Promise<string | undefined>>();
  readonly #imports = new Map<string, Promise<NamedImports>>();

  /** Starts with the texts that `others` has read. */
  constructor(others?: SourceTexts) {
    if (others !== undefined) for (const [path, text] of others.#texts) this.#texts.set(path, text);
  }

  read(path: string): Promise<string | undefined> {
    let text = this.#texts.get(path);
    if (text === undefined) {
      text = readFile(path, "utf8").catch(() => undefined);
      this.#texts.set(path, text);
    }
    return text;
  }

  /** The direct imports of a file. */
  importsIn(path: string): Promise<NamedImports> {
    let imports = this.#imports.get(path);
    if (imports === undefined) {
      imports = this.#readImports(path);
      this.#imports.set(path, imports);
    }
    return imports;
  }

  /** The relative imports of a file, direct and indirect. */
  async importsOf(file: string): Promise<readonly string[]> {
    const found = new Set<string>();
    const open = [file];
    for (let path = open.pop(); path !== undefined; path = open.pop()) {
      const { files } = await this.importsIn(path);
      for (const imported of files) {
        if (imported === file || found.has(imported)) continue;
        found.add(imported);
        open.push(imported);
      }
    }
    return [...found];
  }

  /** The source code among these files, by path. */
  async codeOf(paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const own = paths.filter(
      (path) => CODE.test(path) && !DECLARATIONS.test(path) && !path.includes(`${sep}node_modules${sep}`),
    );
    const code = new Map<string, string>();
    for (const path of own) {
      const text = await this.read(path);
      if (text !== undefined) code.set(path, text);
    }
    return code;
  }

  async #readImports(path: string): Promise<NamedImports> {
    const text = (await this.read(path)) ?? "";
    if (path.endsWith(".py")) return { files: pythonImports(path, text), names: [] };
    const files: string[] = [];
    const names: string[] = [];
    for (const [, specifier = ""] of text.matchAll(IMPORT)) {
      if (!/^\.{1,2}\//.test(specifier)) names.push(specifier);
      else {
        const imported = resolveImport(path, specifier);
        if (imported !== undefined) files.push(imported);
      }
    }
    return { files, names };
  }
}

function resolveImport(from: string, specifier: string): string | undefined {
  const candidates = importCandidates(join(dirname(from), specifier));
  return candidates.find((candidate) => statSync(candidate, { throwIfNoEntry: false })?.isFile() === true);
}

/** The files that an import of this path may resolve to, the most likely first. */
export function importCandidates(path: string): readonly string[] {
  // TypeScript imports a file by the name of its compiled output.
  const stems = [path, ...(/\.m?js$/.test(path) ? [path.replace(/js$/, "ts")] : [])];
  return stems.flatMap((stem) => ENDINGS.map((ending) => `${stem}${ending}`));
}

const PYTHON_IMPORT =
  /^[ \t]*(?:from[ \t]+(?<dots>\.*)(?<base>[\w.]*)[ \t]+import[ \t]+(?<names>\([^)]*\)|[^#\n]+)|import[ \t]+(?<modules>[^#\n]+))/gm;

/** Files beside a Python file that its text may import. False positives do no harm. */
function pythonImports(file: string, text: string): readonly string[] {
  return pythonCandidates(file, text).filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true);
}

/** The same, whether the files exist or not. */
export function pythonCandidates(file: string, text: string): readonly string[] {
  const found = new Set<string>();
  for (const { groups = {} } of text.matchAll(PYTHON_IMPORT)) {
    const { dots = "", base = "", names, modules } = groups;
    // `from . import a` is beside the file; each further dot is one folder up.
    const folder = join(dirname(file), ...Array.from({ length: Math.max(0, dots.length - 1) }, () => ".."));
    const dotted =
      modules === undefined
        ? [base, ...wordsOf(names).map((name) => (base === "" ? name : `${base}.${name}`))]
        : wordsOf(modules);
    for (const name of dotted) for (const path of candidatesOf(folder, name)) if (path !== file) found.add(path);
  }
  return [...found];
}

/** The names in a list of imports, without `as` aliases. */
function wordsOf(list = ""): readonly string[] {
  return list
    .replaceAll(/[()\\]/g, " ")
    .split(",")
    .map((item) => item.trim().split(/\s+/)[0] ?? "")
    .filter((name) => /^\w[\w.]*$/.test(name));
}

/** A module and its parent packages, all of which are executed. */
function candidatesOf(folder: string, name: string): readonly string[] {
  const parts = name.split(".").filter((part) => part !== "");
  return parts.flatMap((_part, index) => {
    const path = join(folder, ...parts.slice(0, index + 1));
    return [join(path, "__init__.py"), `${path}.py`];
  });
}
