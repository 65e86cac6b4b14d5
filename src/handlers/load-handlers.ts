import { statSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { glob } from "tinyglobby";
import { type Definition, isDefinition } from "../capabilities/define.ts";
import { compileTool } from "../capabilities/define-tool.ts";
import type { Registry } from "../capabilities/registry.ts";
import { compileSchema } from "../capabilities/schema.ts";

export interface LoadProblem {
  readonly file: string;
  readonly message: string;
  readonly error: unknown;
}

export interface LoadReport {
  readonly files: readonly string[];
  readonly problems: readonly LoadProblem[];
}

const EXTENSIONS = "{ts,mts,js,mjs}";

export interface LoadOptions {
  /** Files, folders or globs, absolute. */
  readonly paths: readonly string[];
  /** Where compiled TypeScript is kept. */
  readonly cacheFolder: string;
}

/** Puts everything that the files export into the registry. A file that fails is reported and takes no other with it. */
export async function loadHandlers(registry: Registry, { paths, cacheFolder }: LoadOptions): Promise<LoadReport> {
  const files = await findFiles(paths);
  const problems: LoadProblem[] = [];
  const importFile = makeImporter(cacheFolder);
  for (const file of files) {
    try {
      const exported: unknown = await importFile(file);
      for (const definition of definitionsOf(exported)) register(registry, definition);
    } catch (error) {
      problems.push({ file, message: error instanceof Error ? error.message : String(error), error });
    }
  }
  for (const path of paths) {
    if (files.length === 0) problems.push({ file: path, message: "no file matches", error: undefined });
  }
  return { files, problems };
}

async function findFiles(paths: readonly string[]): Promise<readonly string[]> {
  const patterns = paths.map((path) => (isFolder(path) ? `${escapeGlob(path)}/**/*.${EXTENSIONS}` : path));
  if (patterns.length === 0) return [];
  const found = await glob(patterns, { absolute: true, ignore: ["**/node_modules/**", "**/*.d.ts", "**/*.d.mts"] });
  return found.filter((file) => !basename(file).startsWith("_")).sort();
}

/**
 * JavaScript is imported as it is; TypeScript goes through a compiler. Files outside any project cannot resolve
 * "owlclaw": for them, and for TypeScript, the name means this very package.
 */
function makeImporter(cacheFolder: string): (file: string) => Promise<unknown> {
  let compiled: ((file: string) => Promise<unknown>) | undefined;
  const importCompiled = async (file: string): Promise<unknown> => {
    if (compiled === undefined) {
      const { createJiti } = await import("jiti");
      const jiti = createJiti(import.meta.url, {
        fsCache: cacheFolder,
        interopDefault: false,
        alias: { owlclaw: publicEntry() },
      });
      compiled = (path) => jiti.import(path);
    }
    return compiled(file);
  };
  return async (file) => {
    if (/\.m?ts$/.test(file)) return importCompiled(file);
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
  return fileURLToPath(new URL(`../index.${extension}`, import.meta.url));
}

function isMissingOwlclaw(error: unknown): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    error.code === "ERR_MODULE_NOT_FOUND" &&
    error.message.includes("'owlclaw'")
  );
}

function definitionsOf(exported: unknown): Definition[] {
  if (typeof exported !== "object" || exported === null) return [];
  const values: unknown[] = Object.values(exported).flat();
  // A definition may be exported under two names, as itself and as the default.
  return [...new Set(values)].filter(isDefinition);
}

function register(registry: Registry, { kind, definition }: Definition): void {
  switch (kind) {
    case "handler":
      return registry.addTool(compileTool(definition));
    case "resource":
      return registry.addResource(definition);
    case "prompt": {
      const schema = definition.arguments;
      return registry.addPrompt({
        definition,
        arguments: schema === undefined ? undefined : compileSchema(schema, "input"),
      });
    }
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function escapeGlob(path: string): string {
  return path.replaceAll(/[\\*?[\]{}()!]/g, "\\$&");
}
