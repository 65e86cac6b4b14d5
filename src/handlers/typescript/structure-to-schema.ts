import type { SchemaWriter } from "./type-to-schema.ts";
import type ts from "typescript-6";
import type { JsonSchema } from "../../capability/schema.ts";
import {
  compiler,
  hasFlag,
  mayBeNothing,
  isNothing,
  isObject,
  literalValue,
  isDate,
  isTuple,
  isStringMapping,
  isTemplateLiteral,
} from "./compiler.ts";
import { documentedSchema } from "./constraint-tags.ts";
import { docOfSymbol } from "./doc-comment.ts";
import { type TypeLocation, locationBelow, LATER_ITEMS } from "./type-location.ts";

const INTEGER_KEY = String.raw`^(0|[1-9]\d*)$`;

/** An object type, an intersection or a record. */
export function objectToSchema(writer: SchemaWriter, type: ts.Type, location: TypeLocation): JsonSchema {
  const properties: Record<string, JsonSchema> = {};
  const required: string[] = [];
  for (const field of writer.checker.getPropertiesOfType(type)) {
    const schema = fieldToSchema(writer, field, location);
    if (schema === undefined) continue;
    properties[field.name] = schema;
    if (!isOptionalField(writer.checker, field)) required.push(field.name);
  }
  const open = indexKeywords(writer, type, location);
  const isEmpty = Object.keys(properties).length === 0;
  const isClosed = writer.side === "input" && open["additionalProperties"] === undefined;
  return {
    type: "object",
    ...(isEmpty ? {} : { properties }),
    ...(required.length > 0 ? { required } : {}),
    ...open,
    // TypeScript accepts any object for an empty type.
    ...(isClosed && !(isEmpty && Object.keys(open).length === 0) ? { additionalProperties: false } : {}),
  };
}

export function isOptionalField(checker: ts.TypeChecker, field: ts.Symbol): boolean {
  return (field.flags & compiler.SymbolFlags.Optional) !== 0 || mayBeNothing(checker.getTypeOfSymbol(field));
}

function fieldToSchema(writer: SchemaWriter, field: ts.Symbol, location: TypeLocation): JsonSchema | undefined {
  const node = field.valueDeclaration ?? field.declarations?.[0];
  const below = locationBelow(location, { key: field.name, node });
  if (field.name.startsWith("__@")) {
    return writer.refuse({
      location: below,
      message: "a symbol cannot name a field in JSON",
      fix: "name it with text",
    });
  }
  const type = writer.checker.getTypeOfSymbol(field);
  // "b?: never" says that the field must not exist.
  if (isOptionalField(writer.checker, field) && isAbsent(type)) return undefined;
  const doc = docOfSymbol(field);
  return documentedSchema(writer, { schema: writer.toSchema(type, below), doc, location: below });
}

function isAbsent(type: ts.Type): boolean {
  const parts = type.isUnion() ? type.types : [type];
  return parts.every((part) => hasFlag(part, compiler.TypeFlags.Undefined | compiler.TypeFlags.Never));
}

function indexKeywords(writer: SchemaWriter, type: ts.Type, location: TypeLocation): Record<string, unknown> {
  const patternProperties: Record<string, JsonSchema> = {};
  let additionalProperties: JsonSchema | undefined;
  for (const info of writer.checker.getIndexInfosOfType(type)) {
    const below = locationBelow(location, { key: "*", node: info.declaration });
    if (hasFlag(info.keyType, compiler.TypeFlags.ESSymbol)) continue;
    const schema = writer.toSchema(info.type, below);
    const pattern = hasFlag(info.keyType, compiler.TypeFlags.Number) ? INTEGER_KEY : templatePattern(info.keyType);
    if (hasFlag(info.keyType, compiler.TypeFlags.String)) additionalProperties = schema;
    else if (pattern !== undefined) patternProperties[pattern] = schema;
  }
  return {
    ...(Object.keys(patternProperties).length > 0 ? { patternProperties } : {}),
    ...(additionalProperties === undefined ? {} : { additionalProperties }),
  };
}

type Literal = string | number | boolean;

/** A union as `enum`, `anyOf`, or `oneOf` when one field discriminates the members. */
export function unionToSchema(writer: SchemaWriter, type: ts.UnionType, location: TypeLocation): JsonSchema {
  const members = type.types.filter((member) => !isNothing(member));
  const literals = members.map(literalValue).filter((value) => value !== undefined);
  const others = members.filter(
    (member) =>
      literalValue(member) === undefined &&
      !hasFlag(member, compiler.TypeFlags.Null) &&
      !isTextDate(writer, member, members),
  );
  const schemas = [...literalSchemas(literals), ...others.map((member) => writer.toSchema(member, location))];
  if (members.some((member) => hasFlag(member, compiler.TypeFlags.Null))) schemas.push({ type: "null" });
  const [first] = schemas;
  if (first === undefined)
    return writer.refuse({ location, message: "no value can have this type", fix: "leave it out" });
  if (schemas.length === 1) return first;
  return isDiscriminated(writer, others) && others.length === schemas.length ? { oneOf: schemas } : { anyOf: schemas };
}

/** In a union of Date and string, a date stays text. */
function isTextDate(writer: SchemaWriter, member: ts.Type, all: readonly ts.Type[]): boolean {
  return isDate(member, writer.program) && all.some((other) => hasFlag(other, compiler.TypeFlags.String));
}

function literalSchemas(values: readonly Literal[]): JsonSchema[] {
  const schemas: JsonSchema[] = [];
  for (const type of ["string", "number", "boolean"]) {
    const ofType = values.filter((value) => typeof value === type);
    if (type === "boolean" && ofType.length === 2) schemas.push({ type });
    else if (ofType.length === 1) schemas.push({ type, const: ofType[0] });
    else if (ofType.length > 1) schemas.push({ type, enum: ofType });
  }
  return schemas;
}

/** Whether every member has a field of the same name with literals that no other member has. */
function isDiscriminated({ checker }: SchemaWriter, members: readonly ts.Type[]): boolean {
  const [first] = members;
  if (first === undefined || members.length < 2) return false;
  if (!members.every((member) => isObject(member) || member.isIntersection())) return false;
  return first.getProperties().some(({ name }) => {
    const values = members.map((member) => fieldLiterals(checker, member, name));
    if (values.some((list) => list.length === 0)) return false;
    const all = values.flat();
    return new Set(all).size === all.length;
  });
}

function fieldLiterals(checker: ts.TypeChecker, type: ts.Type, name: string): readonly Literal[] {
  const field = type.getProperty(name);
  if (field === undefined || (field.flags & compiler.SymbolFlags.Optional) !== 0) return [];
  const fieldType = checker.getTypeOfSymbol(field);
  const parts = fieldType.isUnion() ? fieldType.types : [fieldType];
  const values = parts.map(literalValue);
  return values.every((value) => value !== undefined) ? values : [];
}

export function arrayToSchema(writer: SchemaWriter, type: ts.TypeReference, location: TypeLocation): JsonSchema {
  const [item] = writer.checker.getTypeArguments(type);
  if (item === undefined) return { type: "array" };
  // The type of an always empty array.
  if (hasFlag(item, compiler.TypeFlags.Never)) return { type: "array", maxItems: 0 };
  const items = writer.toSchema(item, locationBelow(location, { key: "*" }));
  return { type: "array", items: writer.side === "output" ? orNull(item, items) : items };
}

/** An undefined item, or an undefined result, is null in JSON. */
export function orNull(type: ts.Type, schema: JsonSchema): JsonSchema {
  const isNullable = type.isUnion() && type.types.some((member) => hasFlag(member, compiler.TypeFlags.Null));
  return mayBeNothing(type) && !isNullable ? { anyOf: [schema, { type: "null" }] } : schema;
}

export function tupleToSchema(writer: SchemaWriter, type: ts.TypeReference, location: TypeLocation): JsonSchema {
  const { target } = type;
  if (!isTuple(target)) return arrayToSchema(writer, type, location);
  const items = writer.checker.getTypeArguments(type);
  const restAt = target.elementFlags.findIndex((flag) => (flag & compiler.ElementFlags.Variable) !== 0);
  if (restAt !== -1 && restAt !== items.length - 1) {
    return writer.refuse({
      location,
      message: `${writer.checker.typeToString(type)} has elements after a rest element, which JSON Schema cannot express`,
      fix: "put the rest element last, or write an object with named fields",
    });
  }
  const fixed = restAt === -1 ? items : items.slice(0, restAt);
  const rest = restAt === -1 ? undefined : items[restAt];
  const restLocation = locationBelow(location, { key: fixed.length === 0 ? "*" : LATER_ITEMS });
  const prefixItems = fixed.map((item, index) =>
    writer.toSchema(item, locationBelow(location, { key: String(index) })),
  );
  return {
    type: "array",
    ...(prefixItems.length > 0 ? { prefixItems } : {}),
    // Not "items: false": some clients do not support boolean schemas.
    ...(rest === undefined ? { maxItems: fixed.length } : { items: writer.toSchema(rest, restLocation) }),
    ...(target.minLength > 0 ? { minItems: target.minLength } : {}),
  };
}

const ANY_TEXT = String.raw`[\s\S]*`;
const INTEGER = String.raw`-?\d+`;
const NUMBER = String.raw`-?\d+(\.\d+)?([eE][+-]?\d+)?`;

/** The regular expression for a template literal type; undefined when a part cannot be expressed. */
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
