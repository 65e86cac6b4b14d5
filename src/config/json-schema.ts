import { z } from "zod";
import { fieldFacts } from "./field.ts";
import { CONFIG_KEYS } from "./keys.ts";
import { configSchema } from "./schema.ts";

/** The JSON Schema that lets editors check and complete `mcp-server.yaml`. */
export function configJsonSchema(): Record<string, unknown> {
  const { $schema, ...schema } = z.toJSONSchema(configSchema, {
    target: "draft-7",
    io: "input",
    override: ({ zodSchema, jsonSchema, path }) => {
      // JSON Schema's own word for "never show this".
      if (fieldFacts.get(zodSchema)?.secret === true) jsonSchema.writeOnly = true;
      if (zodSchema instanceof z.ZodObject) Object.assign(jsonSchema.properties ?? {}, aliasesIn(path));
    },
  });
  return { $schema, title: "OwlClaw MCP server", ...schema };
}

/** Other names of keys that stand in the section at this place of the schema. */
function aliasesIn(place: readonly (string | number)[]): Record<string, object> {
  const section = place.filter((step) => step !== "properties").join(".");
  const found = CONFIG_KEYS.flatMap(({ alias = "", path, schema }) => {
    const [name = "", ...above] = alias.split(".").toReversed();
    if (alias === "" || above.toReversed().join(".") !== section) return [];
    const { $schema: _root, ...own } = z.toJSONSchema(schema, { target: "draft-7", io: "input" });
    return [[name, { ...own, description: `Another name of ${path}.` }] as const];
  });
  return Object.fromEntries(found);
}
