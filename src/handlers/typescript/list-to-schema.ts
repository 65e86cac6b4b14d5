import type ts from "typescript-6";
import type { JsonSchema } from "../../capability/schema.ts";
import { compiler } from "./compiler.ts";
import { LATER_ITEMS, type Mapping, type Place, placeBelow } from "./mapping.ts";
import { hasFlag, isTuple, mayBeNothing } from "./type-guards.ts";

export function arrayToSchema(mapping: Mapping, type: ts.TypeReference, place: Place): JsonSchema {
  const [item] = mapping.checker.getTypeArguments(type);
  if (item === undefined) return { type: "array" };
  // The type of an array that is always empty.
  if (hasFlag(item, compiler.TypeFlags.Never)) return { type: "array", maxItems: 0 };
  const items = mapping.toSchema(item, placeBelow(place, { key: "*" }));
  return { type: "array", items: mapping.side === "output" ? orNull(item, items) : items };
}

/** What is undefined in an array, or as a whole result, is null on the wire. */
export function orNull(type: ts.Type, schema: JsonSchema): JsonSchema {
  const isNullable = type.isUnion() && type.types.some((member) => hasFlag(member, compiler.TypeFlags.Null));
  return mayBeNothing(type) && !isNullable ? { anyOf: [schema, { type: "null" }] } : schema;
}

export function tupleToSchema(mapping: Mapping, type: ts.TypeReference, place: Place): JsonSchema {
  const { target } = type;
  if (!isTuple(target)) return arrayToSchema(mapping, type, place);
  const items = mapping.checker.getTypeArguments(type);
  const restAt = target.elementFlags.findIndex((flag) => (flag & compiler.ElementFlags.Variable) !== 0);
  if (restAt !== -1 && restAt !== items.length - 1) {
    return mapping.refuse({
      place,
      message: `${mapping.checker.typeToString(type)} has elements after a rest element, which JSON Schema cannot say`,
      fix: "put the rest element last, or write an object with named fields",
    });
  }
  const fixed = restAt === -1 ? items : items.slice(0, restAt);
  const rest = restAt === -1 ? undefined : items[restAt];
  const restPlace = placeBelow(place, { key: fixed.length === 0 ? "*" : LATER_ITEMS });
  const prefixItems = fixed.map((item, index) => mapping.toSchema(item, placeBelow(place, { key: String(index) })));
  return {
    type: "array",
    ...(prefixItems.length > 0 ? { prefixItems } : {}),
    // Not "items: false": validators of clients that know less than JSON Schema stumble over a bare boolean.
    ...(rest === undefined ? { maxItems: fixed.length } : { items: mapping.toSchema(rest, restPlace) }),
    ...(target.minLength > 0 ? { minItems: target.minLength } : {}),
  };
}
