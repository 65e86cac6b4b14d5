import { configJsonSchema } from "../config/json-schema.ts";
import type { CommandCall } from "./command-action.ts";
import { jsonText } from "./text.ts";

export async function configSchemaCommand({ terminal }: CommandCall): Promise<number> {
  terminal.out(jsonText(configJsonSchema()));
  return 0;
}
