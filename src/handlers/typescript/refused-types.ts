import type ts from "typescript-6";
import { compiler, hasFlag, isLibraryType, isObject } from "./compiler.ts";
import type { TypeLocation, Refusal } from "./type-location.ts";

const BYTES = 'write string and decode it: Buffer.from(text, "base64")';
const JSON_ONLY = "write an interface with the fields that JSON can express";

/** Common types that JSON cannot express, and what to write instead. */
const FIXES: Readonly<Record<string, string>> = {
  Map: "write Record<string, V> and make the map inside: new Map(Object.entries(value))",
  ReadonlyMap: "write Record<string, V> and make the map inside: new Map(Object.entries(value))",
  WeakMap: "write Record<string, V>",
  Set: "write T[] with the tag @uniqueItems and make the set inside: new Set(value)",
  ReadonlySet: "write readonly T[] with the tag @uniqueItems and make the set inside: new Set(value)",
  WeakSet: "write T[] with the tag @uniqueItems",
  URL: "write string with the tag @format uri and make the URL inside: new URL(text)",
  RegExp: "write string with the tag @format regex and make the expression inside: new RegExp(text)",
  Buffer: BYTES,
  ArrayBuffer: BYTES,
  SharedArrayBuffer: BYTES,
  DataView: BYTES,
  Blob: BYTES,
  File: BYTES,
  Promise: "write the type of the value that it resolves to",
  Iterable: "write T[]",
  Iterator: "write T[]",
  IterableIterator: "write T[]",
  AsyncIterable: "write T[]",
  Generator: "write T[]",
  AsyncGenerator: "write T[]",
  Function: "write the data that the function would be given",
  Symbol: "write string",
  Error: "write { message: string }",
  String: "write string",
  Number: "write number",
  Boolean: "write boolean",
  Object: "write Record<string, unknown>",
};

/** Library types that JSON can express. `Record`, `Pick` and similar types have no name. */
const PLAIN = new Set(["__type", "__object", "Array", "ReadonlyArray", "Date"]);

const PRIMITIVE_FIXES: readonly (readonly [ts.TypeFlags, string])[] = [
  [compiler.TypeFlags.BigIntLike, "write number, or string and make it inside: BigInt(text)"],
  [compiler.TypeFlags.ESSymbolLike, "write string"],
  [compiler.TypeFlags.Never, "write the type of a value that can exist, or leave it out"],
];

/** What to write instead of a type that JSON cannot express; undefined when it can. */
export function fixFor(type: ts.Type, program: ts.Program): string | undefined {
  const primitive = PRIMITIVE_FIXES.find(([flags]) => hasFlag(type, flags));
  if (primitive !== undefined) return primitive[1];
  if (type.getCallSignatures().length > 0) return FIXES["Function"];
  if (type.getConstructSignatures().length > 0) return JSON_ONLY;
  const symbol = type.getSymbol();
  if (symbol === undefined) return undefined;
  if (isLibraryType(type, program) || isNodeType(symbol)) return isObject(type) ? libraryFix(symbol.name) : undefined;
  const isClass = (symbol.flags & compiler.SymbolFlags.Class) !== 0;
  return isClass ? `${JSON_ONLY}: an instance of a class loses its methods` : undefined;
}

function libraryFix(name: string): string | undefined {
  if (PLAIN.has(name)) return undefined;
  if (/^(Big)?(Int|Uint|Float)\d+(Clamped)?Array$/.test(name)) return BYTES;
  return FIXES[name] ?? JSON_ONLY;
}

function isNodeType(symbol: ts.Symbol): boolean {
  return (
    FIXES[symbol.name] !== undefined &&
    (symbol.declarations ?? []).some((declaration) =>
      declaration.getSourceFile().fileName.includes("/node_modules/@types/node/"),
    )
  );
}

/** Names the first unresolved type in this node, and its import. */
export function unresolvedRefusal(checker: ts.TypeChecker, location: TypeLocation): Refusal {
  const reference = findUnresolved(checker, location.node);
  const name = reference?.getText() ?? location.path;
  const module = reference === undefined ? undefined : importOf(reference);
  if (module === undefined) {
    return {
      location,
      message: `${location.path} has the type ${name}, which cannot be found`,
      fix: "import or declare it, or install the package with its types",
    };
  }
  return {
    location,
    message: `${location.path} has the type ${name}, but the module "${module}" cannot be found`,
    fix: `correct the import of "${module}", or install the package with its types`,
  };
}

function findUnresolved(checker: ts.TypeChecker, node: ts.Node): ts.EntityName | undefined {
  let found: ts.EntityName | undefined;
  const visit = (child: ts.Node): void => {
    if (found !== undefined) return;
    if (compiler.isTypeReferenceNode(child) && checker.getTypeFromTypeNode(child).flags & compiler.TypeFlags.Any) {
      found = child.typeName;
      return;
    }
    compiler.forEachChild(child, visit);
  };
  visit(node);
  return found;
}

function importOf(name: ts.EntityName): string | undefined {
  const first = compiler.isQualifiedName(name) ? name.getFirstToken()?.getText() : name.text;
  for (const statement of name.getSourceFile().statements) {
    if (!compiler.isImportDeclaration(statement) || !compiler.isStringLiteral(statement.moduleSpecifier)) continue;
    const words: readonly string[] = statement.importClause?.getText().match(/[\w$]+/g) ?? [];
    if (first !== undefined && words.includes(first)) return statement.moduleSpecifier.text;
  }
  return undefined;
}
