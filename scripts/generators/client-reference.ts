import { posix } from "node:path";
import { CLIENT_NAMES, type InstallPaths, type Scope, targetOf } from "../../src/cli/install.ts";
import type { Generator } from "./generator.ts";

const INTRODUCTION = `# Clients

<!-- Generated from src/cli/install.ts by npm run generate. Edit that file. -->

What \`owlclaw install CLIENT\` writes, for those who write it themselves. Put the \`owlclaw\` entry beside the servers that are there, and start the
client again. \`SETTINGS\` is \`~/.config\`, on macOS \`~/Library/Application Support\`, on Windows \`%APPDATA%\`. From a clone, \`command\` is the path of its
\`owlclaw\`, and \`args\` begin with \`mcp-server\`. \`--config\` names a file of yours. With \`--no-config\` in its place, an
\`mcp-server.yaml\` in the folder that the client starts the server in is ignored; with neither, the server does not start until you have
[trusted](../configuration.md#trust) that file. \`--prefix\` names an empty folder of yours: npx takes no package and no \`.npmrc\` from the folder that
the client starts it in.
`;

const PLACES: InstallPaths = { homeFolder: "~", settingsFolder: "SETTINGS", projectFolder: "." };
const ENTRY = {
  command: "npx",
  args: [
    "--prefix",
    "/path/to/empty-folder",
    "-y",
    "owlclaw",
    "mcp-server",
    "start",
    "--config",
    "/path/to/mcp-server.yaml",
  ],
};

export const clientReference: Generator = () =>
  new Map([["docs/reference/clients.md", [INTRODUCTION, ...CLIENT_NAMES.map(section)].join("\n")]]);

function section(client: string): string {
  const target = targetOf(client, "user", PLACES);
  if (target === undefined) throw new Error(`${client} has no place for a user's servers`);
  const config = JSON.stringify({ [target.key]: { owlclaw: target.toEntry(ENTRY) } }, null, 2);
  // A list of words is read in one line.
  const block = config.replaceAll(/\[[^[\]{}]*\]/g, (list) =>
    JSON.stringify(JSON.parse(list)).replaceAll('","', '", "'),
  );
  const scopes: readonly (readonly [Scope, string])[] = [
    ["user", "for you"],
    ["project", "for a project"],
  ];
  const files = scopes.flatMap(([scope, words]) => {
    const file = targetOf(client, scope, PLACES)?.file;
    return file === undefined ? [] : [`\`${posix.normalize(file)}\` ${words}`];
  });
  return `## ${client}\n\n${files.join(", ")}:\n\n\`\`\`json\n${block}\n\`\`\`\n`;
}
