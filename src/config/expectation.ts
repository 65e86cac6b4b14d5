import { z } from "zod";
import type { ConfigKey } from "./keys.ts";

/** What a key wants, in words: "an integer from 0 to 65535". */
export function expectation(key: ConfigKey): string {
  switch (key.type) {
    case "boolean":
      return "true or false";
    case "choice":
      return `one of ${key.choices.join(", ")}`;
    case "integer":
      return `an integer${range(key)}`;
    case "number":
      return `a number${range(key)}`;
    case "list":
      return `a list of strings (${key.description})`;
    case "map":
      return `names with values (${key.description})`;
    case "string":
      return `text (${key.description})`;
  }
}

function range(key: ConfigKey): string {
  const bare = key.schema instanceof z.ZodDefault ? key.schema.unwrap() : key.schema;
  if (!(bare instanceof z.ZodNumber)) return "";
  const { minValue, maxValue } = bare;
  if (minValue === null || maxValue === null) return "";
  return minValue === 0 && key.type === "number" ? ` above 0, up to ${maxValue}` : ` from ${minValue} to ${maxValue}`;
}
