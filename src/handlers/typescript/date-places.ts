import type { JsonSchema } from "../../capability/schema.ts";

/** Places that are a Date in one member of a union and text in another: nobody could tell which one arrived. */
export function ambiguousDates(schema: JsonSchema, pointers: Iterable<string>): string[] {
  return [...pointers].filter((pointer) => {
    const steps = pointer
      .split("/")
      .slice(1)
      .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
    return leavesAt([schema], steps).some((leaf) => leaf["type"] === "string" && leaf["format"] !== "date-time");
  });
}

function leavesAt(schemas: readonly JsonSchema[], [step, ...rest]: readonly string[]): readonly JsonSchema[] {
  const branches = schemas.flatMap(branchesOf);
  if (step === undefined) return branches;
  return leavesAt(
    branches.flatMap((branch) => below(branch, step)),
    rest,
  );
}

function branchesOf(schema: JsonSchema): JsonSchema[] {
  const branches: unknown = schema["anyOf"] ?? schema["oneOf"];
  return Array.isArray(branches) ? branches.filter(isSchema).flatMap(branchesOf) : [schema];
}

function below(schema: JsonSchema, step: string): JsonSchema[] {
  const { properties, prefixItems, items, additionalProperties } = schema;
  if (step === "*") return [items, additionalProperties].filter(isSchema);
  const inTuple: unknown = Array.isArray(prefixItems) ? prefixItems[Number(step)] : undefined;
  const field = isSchema(properties) ? properties[step] : undefined;
  return [inTuple, field].filter(isSchema);
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
