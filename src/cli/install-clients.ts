import { join } from "node:path";

/** How a client starts a server over stdio. */
export interface ServerEntry {
  readonly command: string;
  readonly args: readonly string[];
}

export type Scope = "user" | "project";

export interface Places {
  readonly homeFolder: string;
  /** Where programs keep their settings: `~/.config`, or what the system has in its stead. */
  readonly settingsFolder: string;
  readonly projectFolder: string;
}

interface InstallClient {
  /** The key that holds servers by name. */
  readonly key: string;
  readonly fileOf: Readonly<Partial<Record<Scope, (places: Places) => string>>>;
  readonly toEntry?: (entry: ServerEntry) => object;
}

const withType = (entry: ServerEntry): object => ({ type: "stdio", ...entry });

const CLIENTS: Readonly<Record<string, InstallClient>> = {
  "claude-code": {
    key: "mcpServers",
    fileOf: {
      user: ({ homeFolder }) => join(homeFolder, ".claude.json"),
      project: ({ projectFolder }) => join(projectFolder, ".mcp.json"),
    },
    toEntry: withType,
  },
  "claude-desktop": {
    key: "mcpServers",
    fileOf: { user: ({ settingsFolder }) => join(settingsFolder, "Claude", "claude_desktop_config.json") },
  },
  cursor: {
    key: "mcpServers",
    fileOf: {
      user: ({ homeFolder }) => join(homeFolder, ".cursor", "mcp.json"),
      project: ({ projectFolder }) => join(projectFolder, ".cursor", "mcp.json"),
    },
  },
  vscode: {
    key: "servers",
    fileOf: {
      user: ({ settingsFolder }) => join(settingsFolder, "Code", "User", "mcp.json"),
      project: ({ projectFolder }) => join(projectFolder, ".vscode", "mcp.json"),
    },
    toEntry: withType,
  },
  windsurf: {
    key: "mcpServers",
    fileOf: { user: ({ homeFolder }) => join(homeFolder, ".codeium", "windsurf", "mcp_config.json") },
  },
  "gemini-cli": {
    key: "mcpServers",
    fileOf: {
      user: ({ homeFolder }) => join(homeFolder, ".gemini", "settings.json"),
      project: ({ projectFolder }) => join(projectFolder, ".gemini", "settings.json"),
    },
  },
};

export const CLIENT_NAMES: readonly string[] = Object.keys(CLIENTS);

/** Where a client keeps its servers, and in which form. */
export interface InstallTarget {
  readonly file: string;
  readonly key: string;
  readonly toEntry: (entry: ServerEntry) => object;
}

export function targetOf(client: string, scope: Scope, places: Places): InstallTarget | undefined {
  const known = CLIENTS[client];
  const file = known?.fileOf[scope]?.(places);
  if (known === undefined || file === undefined) return undefined;
  return { file, key: known.key, toEntry: known.toEntry ?? ((entry) => entry) };
}
