import { existsSync } from "node:fs";
import { chmod, copyFile, mkdir, readFile, realpath, rename, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import { defaultDataFolder } from "../config/resolve-paths.ts";
import { userEnvironment } from "../config/environment.ts";
import { PACKAGE_VERSION } from "../config/package-version.ts";
import { type Terminal, askYesOrNo } from "./terminal.ts";
import { type CommandCall, UsageError, EXIT } from "./command.ts";
import type { FlagValues } from "./config-flags.ts";
import { editClientConfig } from "./edit-client-config.ts";
import { lineDiff } from "./trust.ts";

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const OWNER_ONLY = 0o600;

export async function installCommand(call: CommandCall): Promise<number> {
  return change(call, (target, flags) => target.toEntry(serverEntry(flags)));
}

export async function uninstallCommand(call: CommandCall): Promise<number> {
  return change(call, () => undefined);
}

type ToEntry = (target: InstallTarget, flags: FlagValues) => object | undefined;

async function change({ terminal, args, flags }: CommandCall, toEntry: ToEntry): Promise<number> {
  const [client = ""] = args;
  const scope = flags["scope"] === "project" ? "project" : "user";
  const name = String(flags["name"]);
  if (!NAME.test(name)) throw new UsageError("--name takes letters, digits, dots, dashes and underscores");
  const target = targetOf(client, scope, places());
  if (target === undefined) throw new UsageError(`${client} has no configuration of its own for a ${scope}`);
  const file = await realpath(target.file).catch(() => target.file);
  const before = await readFile(file, "utf8").catch(absent);
  const after = edited({ file, before, name, target, entry: toEntry(target, flags) });
  if (after === before) {
    terminal.err(`${file} is as it should be already.\n`);
    return EXIT.ok;
  }
  terminal.out(`${file}\n${lineDiff(before, after, terminal.outColor)}`);
  if (flags["dryRun"] === true) return EXIT.ok;
  if (flags["yes"] !== true && !(await isWanted(terminal))) return EXIT.failure;
  await mkdir(npxFolder(), { recursive: true, mode: 0o700 });
  await replace({ file, before, after, terminal });
  terminal.err(`Wrote ${file}. Start ${client} again to have it read its configuration.\n`);
  return EXIT.ok;
}

function edited(options: {
  readonly file: string;
  readonly before: string;
  readonly name: string;
  readonly target: InstallTarget;
  readonly entry: object | undefined;
}): string {
  const { file, before, name, target, entry } = options;
  try {
    return editClientConfig(before, { key: target.key, name }, entry);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${file} was left as it is: ${reason}. Repair it and try again.`, { cause: error });
  }
}

async function isWanted(terminal: Terminal): Promise<boolean> {
  if (!process.stdin.isTTY) {
    terminal.err("Nothing was written. Say --yes to write it without being asked.\n");
    return false;
  }
  return askYesOrNo("Write this?");
}

/**
 * Replaces the file atomically, so that a client that reads it sees the old or the new content. A backup of the old
 * file is kept beside it.
 */
async function replace(options: {
  readonly file: string;
  readonly before: string;
  readonly after: string;
  readonly terminal: Terminal;
}): Promise<void> {
  const { file, before, after, terminal } = options;
  await mkdir(dirname(file), { recursive: true });
  const mode = await stat(file).then(
    ({ mode: bits }) => bits & 0o777,
    () => OWNER_ONLY,
  );
  if ((await readFile(file, "utf8").catch(absent)) !== before)
    throw new Error(`${file} has changed meanwhile: look at it and try again`);
  if (existsSync(file)) {
    const backup = `${file}.owlclaw-backup`;
    await copyFile(file, backup);
    await chmod(backup, mode);
    terminal.err(`The file as it was: ${backup}\n`);
  }
  const fresh = `${file}.owlclaw-${process.pid}`;
  await writeFile(fresh, after, { mode, flag: "wx" });
  await rename(fresh, file);
}

function absent(error: unknown): string {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
  throw error;
}

function places(): InstallPaths {
  const { env, homeFolder } = userEnvironment();
  const bySystem: Readonly<Record<string, string | undefined>> = {
    darwin: join(homeFolder, "Library", "Application Support"),
    win32: env["APPDATA"],
  };
  const settingsFolder = bySystem[process.platform] ?? env["XDG_CONFIG_HOME"] ?? join(homeFolder, ".config");
  return { homeFolder, settingsFolder, projectFolder: process.cwd() };
}

/**
 * The command that starts this program. It has absolute paths where possible, because clients start servers without the
 * PATH of a shell.
 */
function serverEntry(flags: FlagValues): ServerEntry {
  const config = flags["config"];
  // Clients start the server in the folder of a project. A configuration file in that folder must be ignored.
  const more = typeof config === "string" ? ["--config", resolve(config)] : ["--no-config"];
  const start = ["mcp-server", "start", ...more];
  const main = resolve(process.argv[1] ?? "");
  // npx may delete packages from its cache, so the entry must not contain their paths.
  if (main.includes(`${sep}_npx${sep}`)) {
    // A project file is shared with other users, so it must not contain a path of this machine.
    const prefix = flags["scope"] === "project" ? [] : ["--prefix", npxFolder()];
    return { command: "npx", args: [...prefix, "-y", `owlclaw@${PACKAGE_VERSION}`, ...start] };
  }
  const launcher = join(dirname(main), "..", "owlclaw");
  if (existsSync(launcher)) return { command: launcher, args: start };
  return { command: process.execPath, args: [main, ...start] };
}

/**
 * An empty folder of this user. Without it npx could run a package from the folder of a project, or read an `.npmrc`
 * there.
 */
function npxFolder(): string {
  return join(defaultDataFolder(userEnvironment().env), "npx");
}

/** The command with which a client starts a server over stdio. */
export interface ServerEntry {
  readonly command: string;
  readonly args: readonly string[];
}

export type Scope = "user" | "project";

export interface InstallPaths {
  readonly homeFolder: string;
  /** Where programs keep their settings: `~/.config`, or its equivalent on other systems. */
  readonly settingsFolder: string;
  readonly projectFolder: string;
}

interface InstallClient {
  /** The key of the object that contains the servers by name. */
  readonly key: string;
  readonly fileOf: Readonly<Partial<Record<Scope, (places: InstallPaths) => string>>>;
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

/** The file in which a client keeps its servers, and the form of an entry. */
export interface InstallTarget {
  readonly file: string;
  readonly key: string;
  readonly toEntry: (entry: ServerEntry) => object;
}

export function targetOf(client: string, scope: Scope, places: InstallPaths): InstallTarget | undefined {
  const known = CLIENTS[client];
  const file = known?.fileOf[scope]?.(places);
  if (known === undefined || file === undefined) return undefined;
  return { file, key: known.key, toEntry: known.toEntry ?? ((entry) => entry) };
}
