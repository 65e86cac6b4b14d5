import type ts from "typescript-6";
import type { JsonSchema } from "../../capability/schema.ts";
import { compiler } from "./compiler.ts";
import { isDate } from "./date-type.ts";
import type { Mapping, Place } from "./mapping.ts";
import { hasFlag, isNothing, isObject, literalValue } from "./type-guards.ts";

type Literal = string | number | boolean;

/** A union as `enum`, `anyOf`, or `oneOf` where one field tells the members apart. */
export function unionToSchema(mapping: Mapping, type: ts.UnionType, place: Place): JsonSchema {
  const members = type.types.filter((member) => !isNothing(member));
  const literals = members.map(literalValue).filter((value) => value !== undefined);
  const others = members.filter(
    (member) =>
      literalValue(member) === undefined &&
      !hasFlag(member, compiler.TypeFlags.Null) &&
      !isTextDate(mapping, member, members),
  );
  const schemas = [...literalSchemas(literals), ...others.map((member) => mapping.toSchema(member, place))];
  if (members.some((member) => hasFlag(member, compiler.TypeFlags.Null))) schemas.push({ type: "null" });
  const [first] = schemas;
  if (first === undefined)
    return mapping.refuse({ place, message: "no value can have this type", fix: "leave it out" });
  if (schemas.length === 1) return first;
  return isDiscriminated(mapping, others) && others.length === schemas.length ? { oneOf: schemas } : { anyOf: schemas };
}

/** Where text is welcome too, a date stays the text that it is on the wire. */
function isTextDate(mapping: Mapping, member: ts.Type, all: readonly ts.Type[]): boolean {
  return isDate(member, mapping.program) && all.some((other) => hasFlag(other, compiler.TypeFlags.String));
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

/** Every member has a field of the same name whose values are literals that no other member has. */
function isDiscriminated({ checker }: Mapping, members: readonly ts.Type[]): boolean {
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
