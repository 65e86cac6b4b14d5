import type ts from "typescript-6";
import { createRequire } from "node:module";

/**
 * The API of the last TypeScript with a JavaScript API. Loaded with `require`, since it is CommonJS: `import` would first scan its
 * nine megabytes for the names of exports, which takes three times as long as running it.
 */
export const compiler: typeof ts = load();

function load(): typeof ts {
  const require: (name: string) => unknown = createRequire(import.meta.url);
  const found = require("typescript-6");
  if (!isCompiler(found)) throw new Error("the TypeScript compiler has an unexpected API");
  return found;
}

function isCompiler(value: unknown): value is typeof ts {
  return typeof value === "object" && value !== null && "createProgram" in value;
}

export function hasFlag(type: ts.Type, flags: ts.TypeFlags): boolean {
  return (type.flags & flags) !== 0;
}

export function isTemplateLiteral(type: ts.Type): type is ts.TemplateLiteralType {
  return hasFlag(type, compiler.TypeFlags.TemplateLiteral);
}

export function isStringMapping(type: ts.Type): type is ts.StringMappingType {
  return hasFlag(type, compiler.TypeFlags.StringMapping);
}

export function isObject(type: ts.Type): type is ts.ObjectType {
  return hasFlag(type, compiler.TypeFlags.Object);
}

export function isReference(type: ts.Type): type is ts.TypeReference {
  return isObject(type) && (type.objectFlags & compiler.ObjectFlags.Reference) !== 0;
}

export function isTuple(type: ts.Type): type is ts.TupleType {
  return isObject(type) && (type.objectFlags & compiler.ObjectFlags.Tuple) !== 0;
}

/** A name that the compiler could not resolve has the type `any`; only the intrinsic name differs from a written `any`. */
export function isUnresolved(type: ts.Type): boolean {
  return hasFlag(type, compiler.TypeFlags.Any) && "intrinsicName" in type && type.intrinsicName === "error";
}

export function literalValue(type: ts.Type): string | number | boolean | undefined {
  if (type.isStringLiteral() || type.isNumberLiteral()) return type.value;
  if (!hasFlag(type, compiler.TypeFlags.BooleanLiteral)) return undefined;
  return "intrinsicName" in type && type.intrinsicName === "true";
}

/** Types without a JSON value: a field of such a type is omitted. */
export function isNothing(type: ts.Type): boolean {
  return hasFlag(type, compiler.TypeFlags.Undefined | compiler.TypeFlags.Void);
}

export function mayBeNothing(type: ts.Type): boolean {
  return type.isUnion() ? type.types.some(isNothing) : isNothing(type);
}

/** A type of TypeScript's default library, such as `Date` or `Map`. */
export function isLibraryType(type: ts.Type, program: ts.Program): boolean {
  return isLibrarySymbol(type.getSymbol(), program);
}

export function isLibrarySymbol(symbol: ts.Symbol | undefined, program: ts.Program): boolean {
  return (symbol?.declarations ?? []).some((declaration) =>
    program.isSourceFileDefaultLibrary(declaration.getSourceFile()),
  );
}

export function isDate(type: ts.Type, program: ts.Program): boolean {
  return type.getSymbol()?.name === "Date" && isLibraryType(type, program);
}
