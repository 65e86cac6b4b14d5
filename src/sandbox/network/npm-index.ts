import { join } from "node:path";
import { OwlError } from "../../errors/owl-error.ts";
import { readIniFile } from "./ini-file.ts";
import { type PackageIndex, ruleForUrl, toPublicUrl, type ToolSources } from "./package-index.ts";
import { runTool } from "./run-tool.ts";

/** The registries of npm on this machine: `npm_config_registry`, then its files; without either, npm is asked. */
export async function readNpmIndex(sources: ToolSources): Promise<PackageIndex> {
  const values = await configured(sources);
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

async function configured({ env, homeFolder, systemFiles = [] }: ToolSources): Promise<Map<string, string>> {
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
