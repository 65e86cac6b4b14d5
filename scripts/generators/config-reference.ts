import { configJsonSchema, configReference } from "../../src/config/render-config.ts";
import type { Generator } from "./generator.ts";
import { toTable } from "./markdown-table.ts";

const INTRODUCTION = `# Configuration

<!-- Generated from src/config/schema.ts by npm run generate. Edit that file. -->

Each key can be set in \`mcp-server.yaml\`, in the environment, or with a flag. The environment overrides the file, and a flag
overrides both. \`owlclaw mcp-server config show\` prints the values in force and where each came from.

Your editor checks and completes the file with [mcp-server.schema.json](mcp-server.schema.json).
\`owlclaw mcp-server config schema\` prints the same schema.

`;

export const configDocs: Generator = () => {
  const rows = configReference().map(({ path, type, default: fallback, env, description }) => [
    `\`${path}\``,
    type,
    `\`${fallback}\``,
    env.map((name) => `\`${name}\``).join(", "),
    description,
  ]);
  return new Map([
    [
      "docs/reference/configuration.md",
      INTRODUCTION + toTable(["key", "type", "default", "environment", "what it does"], rows),
    ],
    ["docs/reference/mcp-server.schema.json", `${JSON.stringify(configJsonSchema(), null, 2)}\n`],
  ]);
};
