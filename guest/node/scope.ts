import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { META_NAME } from "./transform.ts";

/** Makes the global scope what a module's scope would be, as far as code can tell. */
export function prepareScope(): void {
  const folder = process.cwd();
  const filename = join(folder, "cell.js");
  const module = { exports: {} };
  const variables: Record<string, unknown> = {
    require: createRequire(filename),
    module,
    exports: module.exports,
    __dirname: folder,
    __filename: filename,
    [META_NAME]: { url: pathToFileURL(filename).href, dirname: folder, filename },
  };
  for (const [name, value] of Object.entries(variables)) setGlobal(name, value);
  allowRedeclaration();
  process.argv = [process.argv0];
}

/** `const crypto = require("crypto")` must replace the global of that name, some of which can only be read. */
function allowRedeclaration(): void {
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (!hasGetter(name)) continue;
    const descriptor = Object.getOwnPropertyDescriptor(globalThis, name);
    if (descriptor === undefined || descriptor.set !== undefined || descriptor.configurable !== true) continue;
    const set = (value: unknown): void => setGlobal(name, value);
    Object.defineProperty(globalThis, name, { ...descriptor, set });
  }
}

/** A descriptor would do, but asking for it loads what Node 22 loads when it is first used: `fetch` alone takes 50 ms. */
function hasGetter(name: string): boolean {
  const lookup: unknown = Reflect.get(Object.prototype, "__lookupGetter__");
  return typeof lookup === "function" && Reflect.apply(lookup, globalThis, [name]) !== undefined;
}

function setGlobal(name: string, value: unknown): void {
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}
