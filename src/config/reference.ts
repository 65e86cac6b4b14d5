import { CONFIG_KEYS, type ConfigKey } from "./keys.ts";

export interface ConfigReferenceRow {
  readonly path: string;
  readonly type: string;
  readonly default: string;
  /** Environment variables, the derived name first. */
  readonly env: readonly string[];
  readonly description: string;
}

/** One row for each key, for tables in documents and terminals. */
export function configReference(): ConfigReferenceRow[] {
  return CONFIG_KEYS.map((key) => ({
    path: key.path,
    type: typeName(key),
    default: JSON.stringify(key.defaultValue),
    env: key.env,
    description: key.description,
  }));
}

function typeName(key: ConfigKey): string {
  if (key.type === "choice") return key.choices.join(" | ");
  if (key.type === "map") return "map of strings";
  return key.type === "list" ? "list of strings" : key.type;
}
