import { z } from "zod";
import { fieldFacts } from "./field.ts";
import { configSchema } from "./schema.ts";

/** The JSON Schema that lets editors check and complete `mcp-server.yaml`. */
export function configJsonSchema(): Record<string, unknown> {
  const { $schema, ...schema } = z.toJSONSchema(configSchema, {
    target: "draft-7",
    io: "input",
    override: ({ zodSchema, jsonSchema }) => {
      // JSON Schema's own word for "never show this".
      if (fieldFacts.get(zodSchema)?.secret === true) jsonSchema.writeOnly = true;
    },
  });
  return { $schema, title: "OwlClaw MCP server", ...schema };
}
