import { createRequire } from "node:module";
import type ts from "typescript-6";

/**
 * The compiler's API, of the last line that has one: the native compiler has none. Loaded as the CommonJS that it is: `import` would
 * first search its nine megabytes for the names of exports, which takes three times as long as running it.
 */
export const compiler: typeof ts = load();

function load(): typeof ts {
  const require: (name: string) => unknown = createRequire(import.meta.url);
  const found = require("typescript-6");
  if (!isCompiler(found)) throw new Error("the TypeScript compiler is not what it was");
  return found;
}

function isCompiler(value: unknown): value is typeof ts {
  return typeof value === "object" && value !== null && "createProgram" in value;
}
