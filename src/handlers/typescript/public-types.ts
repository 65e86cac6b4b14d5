import { dirname, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type ts from "typescript-6";

const IS_SOURCE = import.meta.url.endsWith(".ts");
const OWN_ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** What the name "owlclaw" means in a file that no project has installed it for. */
export const PUBLIC_ENTRY: string = resolve(OWN_ROOT, IS_SOURCE ? "index.ts" : "index.d.ts");

/** Is it a type of this package's public API with one of these names? */
export function isPublicType(type: ts.Type, names: readonly string[]): boolean {
  const symbols = [type.aliasSymbol, type.getSymbol()].filter((symbol) => symbol !== undefined);
  return symbols.some(
    (symbol) =>
      names.includes(symbol.name) &&
      (symbol.declarations ?? []).some((declaration) => isOwnFile(declaration.getSourceFile().fileName)),
  );
}

function isOwnFile(file: string): boolean {
  return resolve(file).startsWith(OWN_ROOT + sep) || file.includes("/node_modules/owlclaw/");
}
