import { CONFIG_TREE, isSection, type ConfigKey, type ConfigSection } from "./keys.ts";

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
