import { configJsonSchema } from "../config/json-schema.ts";
import type { CommandCall } from "./command-action.ts";

export async function configSchemaCommand({ terminal }: CommandCall): Promise<number> {
  terminal.out(`${JSON.stringify(configJsonSchema(), null, 2)}\n`);
  return 0;
}
