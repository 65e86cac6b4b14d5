import { fileURLToPath, pathToFileURL } from "node:url";
import type { KeptSources } from "./kept-sources.ts";

export interface ImporterOptions {
  readonly cacheFolder: string | undefined;
  /** What "owlclaw" means. */
  readonly entry?: string | undefined;
  readonly kept?: KeptSources | undefined;
}

/**
 * JavaScript is imported as it is; TypeScript goes through a compiler. Files outside any project cannot resolve
 * "owlclaw": for them, and for TypeScript, the name means this very package.
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
