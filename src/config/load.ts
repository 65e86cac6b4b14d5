import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { checkCandidate, type Candidate, type LayerValues, type Origin } from "./candidate.ts";
import { checkFiles } from "./check-files.ts";
import { checkRules } from "./check-rules.ts";
import { ConfigError, type ConfigIssue, type ConfigLayer } from "./config-error.ts";
import { deepFreeze } from "./deep-freeze.ts";
import { fileState, type FileStates } from "./file-state.ts";
import { readConfigFile } from "./file-layer.ts";
import { CONFIG_KEYS } from "./keys.ts";
import { defaultDataFolder, resolvePaths } from "./resolve-paths.ts";
import { configSchema, type Config } from "./schema.ts";
import { CONFIG_FILE_VARIABLE, readEnvironment, readFlags, type Environment, type FlagSetting } from "./text-layers.ts";

export const CONFIG_FILE_NAME = "mcp-server.yaml";

export interface LoadOptions {
  readonly flags?: readonly FlagSetting[];
  readonly env?: Environment;
  readonly cwd?: string;
  /** The file of `--config`. Default: `MCP_SERVER_CONFIG`, then `mcp-server.yaml` in the working directory if it is there. */
  readonly file?: string;
}

export interface ConfigSource {
  readonly layer: ConfigLayer;
  /** `default`, `mcp-server.yaml:12:3`, `MCP_SERVER_PORT`, `--port`. */
  readonly name: string;
}

export interface LoadedConfig {
  /** Frozen. Paths are absolute, `sandbox.root` is set, `auth.jwt.publicKey` is SPKI PEM text or empty. */
  readonly config: Config;
  /** By path, for every key. */
  readonly sources: ReadonlyMap<string, ConfigSource>;
  /** The config file that was read, as an absolute path. */
  readonly file?: string;
  /** That file as it was read; empty when there was none. */
  readonly read: FileStates;
  /** Reads everything again, as it is now. */
  readonly reload: () => Promise<LoadedConfig>;
}

/**
 * Merges defaults, file, environment and flags, each over the ones before.
 * @throws ConfigError with everything that is wrong in any of them.
 */
export async function loadConfig(options: LoadOptions = {}): Promise<LoadedConfig> {
  const { flags = [], env = process.env, cwd = process.cwd() } = options;
  const file = findFile(options.file ?? env[CONFIG_FILE_VARIABLE], cwd);
  const read = new Map(file === undefined ? [] : [[file, await fileState(file)]]);
  const nothing: LayerValues = { candidates: [], issues: [] };
  const layers = [
    inFolder(file === undefined ? nothing : await readConfigFile(file), file === undefined ? cwd : dirname(file)),
    inFolder(readEnvironment(env), cwd),
    inFolder(readFlags(flags), cwd),
  ];
  const { values, issues } = mergeLayers(layers);
  const tree = buildTree(values);
  const originOf = (path: string): Origin => values.get(path)?.origin ?? { layer: "default", source: "default" };

  const config = configSchema.parse(tree);
  const isBroken = (path: string): boolean =>
    issues.some(
      (issue) => issue.path === path || issue.path.startsWith(`${path}[`) || issue.path.startsWith(`${path}.`),
    );
  const dataFolder = config.sandbox.root === "" ? defaultDataFolder(env) : config.sandbox.root;
  const files = checkFiles({ config, dataFolder, originOf });
  const problems = [...issues, ...checkRules({ config, originOf, isBroken }), ...files.issues];
  if (problems.length > 0) throw new ConfigError(problems);

  config.auth.jwt.publicKey = files.publicKeyPem;
  config.sandbox.root = dataFolder;
  return {
    config: deepFreeze(config),
    sources: toSources(originOf),
    read,
    reload: () => loadConfig(options),
    ...(file === undefined ? {} : { file }),
  };
}

function findFile(named: string | undefined, cwd: string): string | undefined {
  if (named !== undefined && named !== "") return resolve(cwd, named);
  const usual = resolve(cwd, CONFIG_FILE_NAME);
  return existsSync(usual) ? usual : undefined;
}

function inFolder({ candidates, issues }: LayerValues, folder: string): LayerValues {
  return { candidates: candidates.map((candidate) => resolvePaths(candidate, folder)), issues };
}

interface Merged {
  readonly values: ReadonlyMap<string, Candidate>;
  readonly issues: readonly ConfigIssue[];
}

function mergeLayers(layers: readonly LayerValues[]): Merged {
  const values = new Map<string, Candidate>();
  const issues: ConfigIssue[] = [];
  for (const layer of layers) {
    issues.push(...layer.issues);
    for (const candidate of layer.candidates) {
      const found = checkCandidate(candidate);
      issues.push(...found);
      if (found.length === 0) values.set(candidate.key.path, candidate);
    }
  }
  return { values, issues };
}

type Tree = { [name: string]: unknown };

function buildTree(values: ReadonlyMap<string, Candidate>): Tree {
  const root: Tree = {};
  for (const [path, { value }] of values) {
    const names = path.split(".");
    const leaf = names.pop() ?? path;
    let section = root;
    for (const name of names) {
      const below: Tree = isTree(section[name]) ? section[name] : {};
      section[name] = below;
      section = below;
    }
    section[leaf] = value;
  }
  return root;
}

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function toSources(originOf: (path: string) => Origin): ReadonlyMap<string, ConfigSource> {
  return new Map(
    CONFIG_KEYS.map(({ path }) => {
      const { layer, source } = originOf(path);
      return [path, { layer, name: source }] as const;
    }),
  );
}
