import type { ConfigLayer } from "./config-error.ts";
import { CONFIG_KEYS, CONFIG_TREE, isSection, type ConfigKey, type ConfigSection } from "./keys.ts";
import type { LoadedConfig } from "./load.ts";
import { isEmpty, MASK, showValue } from "./mask.ts";
import { type Config, configSchema } from "./schema.ts";
import { z } from "zod";
import { fieldFacts } from "./field.ts";

/** One effective value, as `config show` prints it. */
export interface EffectiveValue {
  readonly path: string;
  /** The value itself, or the mask for a secret that is set. */
  readonly value: unknown;
  /** The value as one short line. */
  readonly text: string;
  readonly layer: ConfigLayer;
  readonly source: string;
}

export function effectiveValues({ config, sources }: LoadedConfig): EffectiveValue[] {
  return CONFIG_KEYS.map(({ path, secret }) => {
    const value = valueAt(config, path);
    const { layer, name } = sources.get(path) ?? { layer: "default", name: "default" };
    return { path, value: secret && !isEmpty(value) ? MASK : value, text: showValue(path, value), layer, source: name };
  });
}

function valueAt(config: Config, path: string): unknown {
  let value: unknown = config;
  for (const name of path.split(".")) {
    value = typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  }
  return value;
}

/** The JSON Schema that lets editors check and complete `mcp-server.yaml`. */
export function configJsonSchema(): Record<string, unknown> {
  const { $schema, ...schema } = z.toJSONSchema(configSchema, {
    target: "draft-7",
    io: "input",
    override: ({ zodSchema, jsonSchema, path }) => {
      // `writeOnly` is the JSON Schema keyword for values that must not be returned.
      if (fieldFacts.get(zodSchema)?.secret === true) jsonSchema.writeOnly = true;
      if (zodSchema instanceof z.ZodObject) Object.assign(jsonSchema.properties ?? {}, aliasesIn(path));
    },
  });
  return { $schema, title: "OwlClaw MCP server", ...schema };
}

/** The aliases of keys that belong to the section at this path of the schema. */
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

const HEAD = `# Configuration of the OwlClaw MCP server.
# Every key stands here with its default: change what you need, delete the rest.
# Environment variables override this file, and flags override both.
# Check it with: owlclaw mcp-server config validate
`;

/** A commented `mcp-server.yaml` with every key at its default. */
export function renderSampleYaml(): string {
  const lines: string[] = [];
  appendChildren(CONFIG_TREE, "", lines);
  return `${HEAD}${lines.join("\n")}\n`;
}

function appendChildren(section: ConfigSection, indent: string, lines: string[]): void {
  for (const [name, node] of section.children) {
    if (indent === "") lines.push("");
    if (isSection(node)) {
      lines.push(`${indent}# ${node.description}`, `${indent}${name}:`);
      appendChildren(node, `${indent}  `, lines);
    } else {
      lines.push(`${indent}# ${comment(node)}`, `${indent}${name}: ${JSON.stringify(node.defaultValue)}`);
    }
  }
}

function comment(key: ConfigKey): string {
  const choices = key.choices.length === 0 ? "" : ` (${key.choices.join(" | ")})`;
  return `${key.description}${choices} [${key.env.at(-1)}]`;
}

export interface ConfigReferenceRow {
  readonly path: string;
  readonly type: string;
  readonly default: string;
  /** Environment variables, the derived name first. */
  readonly env: readonly string[];
  readonly description: string;
}

/** One row for each key, for tables in documentation and terminals. */
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
