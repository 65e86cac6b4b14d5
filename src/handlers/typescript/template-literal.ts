import type ts from "typescript-6";
import { compiler } from "./compiler.ts";
import { hasFlag, isStringMapping, isTemplateLiteral, literalValue } from "./type-guards.ts";

const ANY_TEXT = String.raw`[\s\S]*`;
const INTEGER = String.raw`-?\d+`;
const NUMBER = String.raw`-?\d+(\.\d+)?([eE][+-]?\d+)?`;

/** The regular expression for a template literal type; undefined when a part has none. */
export function templatePattern(type: ts.Type): string | undefined {
  const body = partPattern(type);
  return body === undefined ? undefined : `^${body}$`;
}

function partPattern(type: ts.Type): string | undefined {
  if (isTemplateLiteral(type)) return joinedPattern(type);
  if (isStringMapping(type)) return casePattern(type);
  const literal = literalValue(type);
  if (literal !== undefined) return escapePattern(String(literal));
  if (type.isUnion()) return alternatives(type.types.map(partPattern));
  if (hasFlag(type, compiler.TypeFlags.String | compiler.TypeFlags.Any)) return ANY_TEXT;
  if (hasFlag(type, compiler.TypeFlags.Number)) return NUMBER;
  if (hasFlag(type, compiler.TypeFlags.BigInt)) return INTEGER;
  return undefined;
}

function joinedPattern({ texts, types }: ts.TemplateLiteralType): string | undefined {
  const parts = types.map(partPattern);
  if (!parts.every((part) => part !== undefined)) return undefined;
  return texts.map((text, index) => escapePattern(text) + (parts[index] ?? "")).join("");
}

function casePattern({ symbol, type }: ts.StringMappingType): string | undefined {
  if (!hasFlag(type, compiler.TypeFlags.String)) return undefined;
  switch (symbol.name) {
    case "Uppercase":
      return "[^a-z]*";
    case "Lowercase":
      return "[^A-Z]*";
    case "Capitalize":
      return String.raw`([^a-z][\s\S]*)?`;
    case "Uncapitalize":
      return String.raw`([^A-Z][\s\S]*)?`;
    default:
      return undefined;
  }
}

function alternatives(parts: readonly (string | undefined)[]): string | undefined {
  return parts.every((part) => part !== undefined) ? `(${parts.join("|")})` : undefined;
}

function escapePattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}
