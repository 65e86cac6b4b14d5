import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, sep } from "node:path";

const CODE = /\.(?:m?[jt]s|py)$/;
const DECLARATIONS = /\.d\.m?ts$/;
/** Only files beside the importing one: packages do not change under a server that runs. */
const LOCAL_IMPORT = /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)["'](\.{1,2}\/[^"'\n]+)["']/g;
const ENDINGS = ["", ".ts", ".mts", ".js", ".mjs", ".json", "/index.ts", "/index.js"];

/** The texts of files at one moment: each is read once. */
export class SourceTexts {
  readonly #texts = new Map<string, Promise<string | undefined>>();

  read(path: string): Promise<string | undefined> {
    let text = this.#texts.get(path);
    if (text === undefined) {
      text = readFile(path, "utf8").catch(() => undefined);
      this.#texts.set(path, text);
    }
    return text;
  }

  /** Files that a script imports by their place, and those that these import. What a text only seems to import does no harm. */
  async importsOf(script: string): Promise<readonly string[]> {
    const found = new Set<string>();
    const open = [script];
    for (let path = open.pop(); path !== undefined; path = open.pop()) {
      for (const [, specifier = ""] of ((await this.read(path)) ?? "").matchAll(LOCAL_IMPORT)) {
        const imported = resolveImport(path, specifier);
        if (imported === undefined || imported === script || found.has(imported)) continue;
        found.add(imported);
        open.push(imported);
      }
    }
    return [...found];
  }

  /** The code among these files, by path. */
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
}

function resolveImport(from: string, specifier: string): string | undefined {
  const path = join(dirname(from), specifier);
  // TypeScript names a file as it will be called when it is compiled.
  const stems = [path, ...(/\.m?js$/.test(path) ? [path.replace(/js$/, "ts")] : [])];
  const candidates = stems.flatMap((stem) => ENDINGS.map((ending) => `${stem}${ending}`));
  return candidates.find((candidate) => statSync(candidate, { throwIfNoEntry: false })?.isFile() === true);
}
