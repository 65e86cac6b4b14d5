import fs from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

interface ImporterOptions {
  readonly cacheFolder: string | undefined;
  /** The file that `import "owlclaw"` loads. */
  readonly entry?: string | undefined;
  readonly kept?: KeptSources | undefined;
}

/**
 * JavaScript is imported directly; TypeScript is compiled by jiti. A file outside of any project cannot resolve
 * "owlclaw": for it, and for TypeScript, the name is an alias of this package.
 */
export function makeImporter({
  cacheFolder,
  entry = publicEntry(),
  kept,
}: ImporterOptions): (file: string) => Promise<unknown> {
  let compiled: ((file: string) => Promise<unknown>) | undefined;
  const importCompiled = async (file: string): Promise<unknown> => {
    if (compiled === undefined) {
      const { createJiti } = await import("jiti");
      const jiti = createJiti(import.meta.url, {
        fsCache: cacheFolder ?? false,
        interopDefault: false,
        alias: { owlclaw: entry },
      });
      compiled = (path) => jiti.import(path);
    }
    return compiled(file);
  };
  return async (file) => {
    if (/\.m?ts$/.test(file) || kept?.has(file) === true) return importCompiled(file);
    try {
      const module: unknown = await import(pathToFileURL(file).href);
      return module;
    } catch (error) {
      if (!isMissingOwlclaw(error)) throw error;
      return importCompiled(file);
    }
  };
}

function publicEntry(): string {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  return fileURLToPath(new URL(`../../index.${extension}`, import.meta.url));
}

function isMissingOwlclaw(error: unknown): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    error.code === "ERR_MODULE_NOT_FOUND" &&
    error.message.includes("'owlclaw'")
  );
}

/** Texts of files that are broken on disk, as they were when they worked. */
export class KeptSources {
  readonly #texts = new Map<string, string>();

  has(file: string): boolean {
    return this.#texts.has(file);
  }

  add(texts: Readonly<Record<string, string>>): void {
    if (this.#texts.size === 0) this.#standIn();
    for (const [path, text] of Object.entries(texts)) this.#texts.set(path, text);
  }

  /** jiti reads files in this one way, imported ones included; other calls of `readFileSync` are not affected. */
  #standIn(): void {
    fs.readFileSync = new Proxy(fs.readFileSync, {
      apply: (read, self, [path, ...options]: unknown[]): unknown => {
        const kept = typeof path === "string" && options[0] === "utf8" ? this.#texts.get(path) : undefined;
        return kept ?? Reflect.apply(read, self, [path, ...options]);
      },
    });
  }
}
