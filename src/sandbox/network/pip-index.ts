import { join } from "node:path";
import { OwlError } from "../../errors/owl-error.ts";
import { readIniFile } from "./ini-file.ts";
import { type PackageIndex, ruleForUrl, toPublicUrl, type ToolSources } from "./package-index.ts";
import { runTool } from "./run-tool.ts";

const SYSTEM_FILES = ["/etc/xdg/pip/pip.conf", "/etc/pip.conf"];
const KEYS = ["index-url", "extra-index-url", "find-links"] as const;
type Key = (typeof KEYS)[number];

// Where pip goes without any configuration is known to pip alone.
const ASK_PIP = [
  "from pip._internal.models.index import PyPI",
  "print(PyPI.simple_url)",
  "print('https://' + PyPI.file_storage_domain + '/')",
].join("\n");

/** The indexes of pip on this machine: its files, then `PIP_…`; without either, the ones that pip itself has built in. */
export async function readPipIndex(sources: ToolSources): Promise<PackageIndex> {
  const values = await configured(sources);
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

async function configured({ env, homeFolder, systemFiles = SYSTEM_FILES }: ToolSources): Promise<Map<string, string>> {
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
