import type { PresetName } from "../../config/hosts/allow-rule.ts";
import { join } from "node:path";
import { OwlError } from "../../errors/owl-error.ts";
import { readFile } from "node:fs/promises";
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const SYSTEM_FILES = ["/etc/xdg/pip/pip.conf", "/etc/pip.conf"];
const KEYS = ["index-url", "extra-index-url", "find-links"] as const;
const TIMEOUT_MS = 20_000;

/** What a preset stands for on this machine. No host is built in: they come from the tools' configuration or the tools themselves. */
export async function readPreset(preset: PresetName, sources: ToolSources): Promise<PackageIndex> {
  switch (preset) {
    case "pip":
      return await readPipIndex(sources);
    case "npm":
      return await readNpmIndex(sources);
  }
}

/** The rules alone, as `network.allow` would list them. */
export async function presetHosts(preset: PresetName, sources: ToolSources): Promise<readonly string[]> {
  return (await readPreset(preset, sources)).rules;
}

/** The registries of npm on this machine: `npm_config_registry`, then its files; without either, npm is asked. */
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

/** npm's files may name variables, as in `${NPM_HOST}`. */
function expand(value: string, env: ToolSources["env"]): string {
  const bare = value.replace(/^(["'])(.*)\1$/, "$2");
  return bare.replaceAll(/\$\{([^}]+)\}/g, (text, name: string) => env[name] ?? text);
}

async function askNpm(sources: ToolSources): Promise<string> {
  const run = sources.runTool ?? (async (command, args) => await runTool(command, args, sources.env));
  try {
    return await run("npm", ["config", "get", "registry"]);
  } catch {
    // No npm here: then the configuration must say it.
    return "";
  }
}
type Key = (typeof KEYS)[number];

// Where pip goes without any configuration is known to pip alone.
const ASK_PIP = [
  "from pip._internal.models.index import PyPI",
  "print(PyPI.simple_url)",
  "print('https://' + PyPI.file_storage_domain + '/')",
].join("\n");

/** The indexes of pip on this machine: its files, then `PIP_…`; without either, the ones that pip itself has built in. */
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
  // A null device there is pip's own way to say: no file at all.
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
    // No pip here, or one that is built otherwise: then the configuration must say it.
    return [];
  }
}

/** A package index as the machine's own tools are configured to use it. */
export interface PackageIndex {
  /** Rules for `network.allow`, one for each host and port. */
  readonly rules: readonly string[];
  /** Tells the same tool inside a sandbox where the index is. */
  readonly env: Readonly<Record<string, string>>;
}

/** Where a tool's configuration is looked up. The caller reads the environment, this folder does not. */
export interface ToolSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeFolder: string;
  /** Runs a program and gives what it prints. Default: really runs it, for 20 seconds at most. */
  readonly runTool?: (command: string, args: readonly string[]) => Promise<string>;
  /** Files that hold for every user. Default: the tool's own. */
  readonly systemFiles?: readonly string[];
}

/** The URL without user, password, query and fragment: a sandbox gets no credentials. Undefined unless it is http or https. */
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

/** The entries of an ini file as pip and npm write it: `key = value`, indented lines continue a value. Empty when there is no such file. */
export async function readIniFile(path: string): Promise<readonly IniEntry[]> {
  try {
    return parseIni(await readFile(path, "utf8"));
  } catch {
    // An absent or closed file configures nothing.
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

/** What a program prints. It runs at the root of the file system, where no project's own settings lie. */
export async function runTool(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const options = { cwd: "/", env: { ...env }, timeout: TIMEOUT_MS, maxBuffer: 1024 * 1024, encoding: "utf8" } as const;
  const { stdout } = await promisify(execFile)(command, [...args], options);
  return stdout.trim();
}
