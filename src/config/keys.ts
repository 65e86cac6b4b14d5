import { z } from "zod";
import { fieldFacts, type FieldFacts } from "./field.ts";
import { configSchema } from "./schema.ts";

export type ValueType = "string" | "boolean" | "integer" | "number" | "list" | "map" | "choice";

/** One leaf of the configuration schema. All layers, commands and tables use it. */
export interface ConfigKey {
  /** For example `http.cors.origins`. */
  readonly path: string;
  readonly type: ValueType;
  /** For `choice`: the accepted values. */
  readonly choices: readonly string[];
  readonly defaultValue: unknown;
  readonly description: string;
  /** Environment variables that set it, the derived name first. */
  readonly env: readonly string[];
  /** Another path that sets the key. */
  readonly alias: string | undefined;
  readonly secret: boolean;
  readonly pathKind: FieldFacts["path"];
  readonly schema: z.ZodType;
}

/** A node of the configuration that holds keys. */
export interface ConfigSection {
  readonly path: string;
  readonly description: string;
  readonly children: ReadonlyMap<string, ConfigSection | ConfigKey>;
}

export const CONFIG_TREE: ConfigSection = toSection(configSchema, "");

export const CONFIG_KEYS: readonly ConfigKey[] = leaves(CONFIG_TREE);

const BY_PATH: ReadonlyMap<string, ConfigKey> = new Map(
  CONFIG_KEYS.flatMap((key) => [key.path, key.alias ?? key.path].map((path) => [path, key] as const)),
);

export function findKey(path: string): ConfigKey | undefined {
  return BY_PATH.get(path);
}

export function isSection(node: ConfigSection | ConfigKey): node is ConfigSection {
  return "children" in node;
}

/** For example, `sandbox.idleTimeoutSeconds` becomes `MCP_SERVER_SANDBOX_IDLE_TIMEOUT_SECONDS`. */
export function envName(path: string): string {
  const words = path.replaceAll(".", "_").replace(/([a-z0-9])([A-Z])/g, "$1_$2");
  return `MCP_SERVER_${words.toUpperCase()}`;
}

function leaves(section: ConfigSection): ConfigKey[] {
  return [...section.children.values()].flatMap((node) => (isSection(node) ? leaves(node) : [node]));
}

function toSection(schema: z.ZodObject, path: string, description: string = schema.description ?? ""): ConfigSection {
  const children = new Map<string, ConfigSection | ConfigKey>();
  for (const [name, child] of Object.entries(schema.shape)) {
    if (!(child instanceof z.ZodType)) throw new TypeError(`config key ${name} is not a zod schema`);
    const childPath = path === "" ? name : `${path}.${name}`;
    children.set(name, toNode(child, childPath));
  }
  return { path, description, children };
}

function toNode(schema: z.ZodType, path: string): ConfigSection | ConfigKey {
  const bare = withoutDefault(schema);
  if (bare instanceof z.ZodObject) return toSection(bare, path, schema.description);
  const facts: FieldFacts = fieldFacts.get(schema) ?? {};
  return {
    path,
    ...describeType(bare, path),
    defaultValue: schema.parse(undefined),
    description: schema.description ?? "",
    env: [envName(path), ...(facts.env ?? [])],
    alias: facts.alias,
    secret: facts.secret === true,
    pathKind: facts.path,
    schema,
  };
}

function withoutDefault(schema: z.ZodType): unknown {
  return schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault ? schema.unwrap() : schema;
}

function describeType(schema: unknown, path: string): Pick<ConfigKey, "type" | "choices"> {
  if (schema instanceof z.ZodEnum) return { type: "choice", choices: schema.options.map(String) };
  if (schema instanceof z.ZodString) return { type: "string", choices: [] };
  if (schema instanceof z.ZodBoolean) return { type: "boolean", choices: [] };
  if (schema instanceof z.ZodNumber) return { type: schema.isInt ? "integer" : "number", choices: [] };
  if (schema instanceof z.ZodArray) return { type: "list", choices: [] };
  if (schema instanceof z.ZodRecord) return { type: "map", choices: [] };
  throw new TypeError(
    `config key ${path} has a type that text cannot express; teach src/config/keys.ts and value-from-text.ts about it`,
  );
}
