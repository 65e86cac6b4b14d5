import type { PresetName } from "../../config/hosts/allow-rule.ts";
import { join } from "node:path";
import { OwlError } from "../../errors/owl-error.ts";
import { readFile } from "node:fs/promises";
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const SYSTEM_FILES = ["/etc/xdg/pip/pip.conf", "/etc/pip.conf"];
const KEYS = ["index-url", "extra-index-url", "find-links"] as const;
const TOOL_TIMEOUT_MS = 20_000;

/** The hosts of a preset on this machine, from the tools' configuration or from the tools themselves. No host is built in. */
export async function readPreset(preset: PresetName, sources: ToolSources): Promise<PackageIndex> {
  switch (preset) {
    case "pip":
      return await readPipIndex(sources);
    case "npm":
      return await readNpmIndex(sources);
  }
}

/** Only the rules, as entries of `network.allow`. */
export async function presetHosts(preset: PresetName, sources: ToolSources): Promise<readonly string[]> {
  return (await readPreset(preset, sources)).rules;
}

/** The registries of npm on this machine: from `npm_config_registry`, from its files, or from `npm config get`. */
export async function readNpmIndex(sources: ToolSources): Promise<PackageIndex> {
  const values = await npmSettings(sources);
  const registry = toPublicUrl(values.get("registry") ?? (await askNpm(sources)));
  if (registry === undefined) {
    throw new OwlError("invalid_params", "network.allow: the preset npm finds no registry in npm's configuration", {
      hint: "set registry in the user's npmrc or npm_config_registry for the server, or list the hosts by name",
    });
  }
  const scoped = [...values].flatMap(([key, value]) => {
    const url = key.endsWith(":registry") ? toPublicUrl(value) : undefined;
    return url === undefined ? [] : [[`npm_config_${key}`, url] as const];
  });
  const urls = [registry, ...scoped.map(([, url]) => url)];
  return {
    rules: [...new Set(urls.map(ruleForUrl))],
    env: { npm_config_registry: registry, ...Object.fromEntries(scoped) },
  };
}

async function npmSettings({ env, homeFolder, systemFiles = [] }: ToolSources): Promise<Map<string, string>> {
  const fromEnv = (name: string): string | undefined =>
    Object.entries(env).find(([key]) => key.toLowerCase() === `npm_config_${name}`)?.[1];
  const globalFile = fromEnv("globalconfig");
  const userFile = fromEnv("userconfig") ?? join(homeFolder, ".npmrc");
  const values = new Map<string, string>();
  for (const file of [...systemFiles, ...(globalFile === undefined ? [] : [globalFile]), userFile]) {
    for (const { key, value } of await readIniFile(file)) {
      if (key === "registry" || /^@[^:]+:registry$/.test(key)) values.set(key, expand(value, env));
    }
  }
  const registry = fromEnv("registry");
  if (registry !== undefined && registry !== "") values.set("registry", registry);
  return values;
}

/** Expands variables in npm's files, such as `${NPM_HOST}`. */
function expand(value: string, env: ToolSources["env"]): string {
  const bare = value.replace(/^(["'])(.*)\1$/, "$2");
  return bare.replaceAll(/\$\{([^}]+)\}/g, (text, name: string) => env[name] ?? text);
}

async function askNpm(sources: ToolSources): Promise<string> {
  const run = sources.runTool ?? (async (command, args) => await runTool(command, args, sources.env));
  try {
    return await run("npm", ["config", "get", "registry"]);
  } catch {
    // npm is not installed.
    return "";
  }
}
type Key = (typeof KEYS)[number];

// The default index is built into pip.
const ASK_PIP = [
  "from pip._internal.models.index import PyPI",
  "print(PyPI.simple_url)",
  "print('https://' + PyPI.file_storage_domain + '/')",
].join("\n");

/** The indexes of pip on this machine: from its files, from `PIP_…`, or the ones that are built into pip. */
export async function readPipIndex(sources: ToolSources): Promise<PackageIndex> {
  const values = await pipSettings(sources);
  const builtIn = await askPip(sources);
  const urls = (key: Key): string[] => (values.get(key) ?? "").split(/\s+/).flatMap((text) => toPublicUrl(text) ?? []);
  const [index = builtIn[0]] = urls("index-url");
  if (index === undefined) {
    throw new OwlError("invalid_params", "network.allow: the preset pip finds no index in pip's configuration", {
      hint: "set index-url in pip.conf or PIP_INDEX_URL for the server, or list the hosts by name",
    });
  }
  const extra = urls("extra-index-url");
  const usesBuiltIn = builtIn[0] !== undefined && ruleForUrl(builtIn[0]) === ruleForUrl(index);
  const all = [index, ...extra, ...urls("find-links"), ...(usesBuiltIn ? builtIn : [])];
  return {
    rules: [...new Set(all.map(ruleForUrl))],
    env: { PIP_INDEX_URL: index, ...(extra.length > 0 ? { PIP_EXTRA_INDEX_URL: extra.join(" ") } : {}) },
  };
}

async function pipSettings({ env, homeFolder, systemFiles = SYSTEM_FILES }: ToolSources): Promise<Map<string, string>> {
  const configHome = env["XDG_CONFIG_HOME"] ?? join(homeFolder, ".config");
  const named = env["PIP_CONFIG_FILE"];
  const files = [...systemFiles, join(homeFolder, ".pip", "pip.conf"), join(configHome, "pip", "pip.conf")];
  const values = new Map<string, string>();
  // For pip, /dev/null means no file at all.
  for (const file of named === "/dev/null" ? [] : [...files, ...(named === undefined ? [] : [named])]) {
    for (const { section, key, value } of await readIniFile(file)) {
      if (section === "global" || section === "install") values.set(key.replaceAll("_", "-"), value);
    }
  }
  for (const key of KEYS) {
    const value = env[`PIP_${key.toUpperCase().replaceAll("-", "_")}`];
    if (value !== undefined && value !== "") values.set(key, value);
  }
  return values;
}

async function askPip(sources: ToolSources): Promise<readonly string[]> {
  const run = sources.runTool ?? (async (command, args) => await runTool(command, args, sources.env));
  try {
    return (await run("python3", ["-c", ASK_PIP])).split("\n").flatMap((line) => toPublicUrl(line) ?? []);
  } catch {
    // pip is not installed, or has other internals.
    return [];
  }
}

/** A package index as the tools of this machine are configured to use it. */
export interface PackageIndex {
  /** Rules for `network.allow`, one for each host and port. */
  readonly rules: readonly string[];
  /** Configures the same tool inside a sandbox. */
  readonly env: Readonly<Record<string, string>>;
}

/** The sources of a tool's configuration. */
export interface ToolSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeFolder: string;
  /** Runs a program and returns its output. For tests. */
  readonly runTool?: (command: string, args: readonly string[]) => Promise<string>;
  /** Configuration files of the system. Default: those of the tool. */
  readonly systemFiles?: readonly string[];
}

/** The URL without user, password, query and fragment: a sandbox must not get credentials. `undefined` unless it is http or https. */
export function toPublicUrl(text: string): string | undefined {
  try {
    const url = new URL(text.trim());
    if (url.protocol !== "https:" && url.protocol !== "http:") return undefined;
    return `${url.protocol}//${url.host}${url.pathname}`;
  } catch {
    return undefined;
  }
}

export function ruleForUrl(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? defaultPort(protocol) : port}`;
}

function defaultPort(protocol: string): string {
  return protocol === "https:" ? "443" : "80";
}

export interface IniEntry {
  readonly section: string;
  readonly key: string;
  readonly value: string;
}

/** The entries of an ini file of pip or npm: `key = value`, where indented lines continue a value. Empty without a readable file. */
export async function readIniFile(path: string): Promise<readonly IniEntry[]> {
  try {
    return parseIni(await readFile(path, "utf8"));
  } catch {
    // The file does not exist or cannot be read.
    return [];
  }
}

export function parseIni(text: string): readonly IniEntry[] {
  const entries: IniEntry[] = [];
  let section = "";
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === "" || /^\s*[#;]/.test(line)) continue;
    const last = entries.at(-1);
    if (/^\s/.test(line) && last !== undefined && last.section === section) {
      entries[entries.length - 1] = { ...last, value: `${last.value}\n${line.trim()}`.trim() };
      continue;
    }
    const header = /^\s*\[([^\]]*)\]/.exec(line)?.[1];
    if (header !== undefined) {
      section = header.trim();
      continue;
    }
    const [key = "", ...rest] = line.split("=");
    entries.push({ section, key: key.trim(), value: rest.join("=").trim() });
  }
  return entries;
}

/** Runs a program and returns its output. Its folder is the root, which has no settings of a project. */
export async function runTool(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const options = {
    cwd: "/",
    env: { ...env },
    timeout: TOOL_TIMEOUT_MS,
    maxBuffer: 1024 * 1024,
    encoding: "utf8",
  } as const;
  const { stdout } = await promisify(execFile)(command, [...args], options);
  return stdout.trim();
}
