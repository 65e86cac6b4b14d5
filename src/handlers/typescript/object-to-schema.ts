import type ts from "typescript-6";
import type { JsonSchema } from "../../capability/schema.ts";
import { compiler } from "./compiler.ts";
import { documentedSchema } from "./constraint-tags.ts";
import { docOfSymbol } from "./doc-comment.ts";
import { type Mapping, type Place, placeBelow } from "./mapping.ts";
import { templatePattern } from "./template-literal.ts";
import { hasFlag, mayBeNothing } from "./type-guards.ts";

const INTEGER_KEY = String.raw`^(0|[1-9]\d*)$`;

/** An object type, an intersection, a record: its fields and index signatures. */
export function objectToSchema(mapping: Mapping, type: ts.Type, place: Place): JsonSchema {
  const properties: Record<string, JsonSchema> = {};
  const required: string[] = [];
  for (const field of mapping.checker.getPropertiesOfType(type)) {
    const schema = fieldToSchema(mapping, field, place);
    if (schema === undefined) continue;
    properties[field.name] = schema;
    if (!isOptionalField(mapping.checker, field)) required.push(field.name);
  }
  const open = indexKeywords(mapping, type, place);
  const isEmpty = Object.keys(properties).length === 0;
  const isClosed = mapping.side === "input" && open["additionalProperties"] === undefined;
  return {
    type: "object",
    ...(isEmpty ? {} : { properties }),
    ...(required.length > 0 ? { required } : {}),
    ...open,
    // The compiler takes any object for an empty type.
    ...(isClosed && !(isEmpty && Object.keys(open).length === 0) ? { additionalProperties: false } : {}),
  };
}

export function isOptionalField(checker: ts.TypeChecker, field: ts.Symbol): boolean {
  return (field.flags & compiler.SymbolFlags.Optional) !== 0 || mayBeNothing(checker.getTypeOfSymbol(field));
}

function fieldToSchema(mapping: Mapping, field: ts.Symbol, place: Place): JsonSchema | undefined {
  const node = field.valueDeclaration ?? field.declarations?.[0];
  const below = placeBelow(place, { key: field.name, node });
  if (field.name.startsWith("__@")) {
    return mapping.refuse({ place: below, message: "a symbol cannot name a field in JSON", fix: "name it with text" });
  }
  const type = mapping.checker.getTypeOfSymbol(field);
  // "b?: never" says that the field must be absent.
  if (isOptionalField(mapping.checker, field) && isAbsent(type)) return undefined;
  const doc = docOfSymbol(field);
  return documentedSchema(mapping, { schema: mapping.toSchema(type, below), doc, place: below });
}

function isAbsent(type: ts.Type): boolean {
  const parts = type.isUnion() ? type.types : [type];
  return parts.every((part) => hasFlag(part, compiler.TypeFlags.Undefined | compiler.TypeFlags.Never));
}

function indexKeywords(mapping: Mapping, type: ts.Type, place: Place): Record<string, unknown> {
  const patternProperties: Record<string, JsonSchema> = {};
  let additionalProperties: JsonSchema | undefined;
  for (const info of mapping.checker.getIndexInfosOfType(type)) {
    const below = placeBelow(place, { key: "*", node: info.declaration });
    if (hasFlag(info.keyType, compiler.TypeFlags.ESSymbol)) continue;
    const schema = mapping.toSchema(info.type, below);
    const pattern = hasFlag(info.keyType, compiler.TypeFlags.Number) ? INTEGER_KEY : templatePattern(info.keyType);
    if (hasFlag(info.keyType, compiler.TypeFlags.String)) additionalProperties = schema;
    else if (pattern !== undefined) patternProperties[pattern] = schema;
  }
  return {
    ...(Object.keys(patternProperties).length > 0 ? { patternProperties } : {}),
    ...(additionalProperties === undefined ? {} : { additionalProperties }),
  };
}
