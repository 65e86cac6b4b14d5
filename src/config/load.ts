import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { checkCandidate, type Candidate, type LayerValues, type Origin } from "./candidate.ts";
import { checkFiles } from "./check-files.ts";
import { checkRules } from "./check-rules.ts";
import { ConfigError, type ConfigIssue, type ConfigLayer, UntrustedConfigError } from "./config-error.ts";
import { deepFreeze } from "./deep-freeze.ts";
import { fileState, type FileStates } from "./file-state.ts";
import { assertFile, parseConfigText, readConfigText } from "./file-layer.ts";
import { CONFIG_KEYS } from "./keys.ts";
import { isEmpty } from "./mask.ts";
import { type PlannedVolume, isBelow } from "./plan-volumes.ts";
import { defaultDataFolder, resolvePaths } from "./resolve-paths.ts";
import { configSchema, type Config } from "./schema.ts";
import { CONFIG_FILE_VARIABLE, readEnvironment, readFlags, type Environment, type FlagSetting } from "./text-layers.ts";
import { isConfigPlaceholder, TrustedFiles } from "./trusted-files.ts";

export const CONFIG_FILE_NAME = "mcp-server.yaml";

export interface LoadOptions {
  readonly flags?: readonly FlagSetting[];
  readonly env?: Environment;
  readonly cwd?: string;
  /**
   * The file of `--config`. Default: `MCP_SERVER_CONFIG`, then `mcp-server.yaml` in the working directory if it exists.
   */
  readonly file?: string;
  /** `--no-config`: ignores an `mcp-server.yaml` in the working directory. */
  readonly ignoresWorkingDirectory?: boolean;
  /** For commands that show or check the file without applying it. Default: an untrusted file is an error. */
  readonly acceptsUntrusted?: boolean;
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
  /** false: the file was found in the working directory, and this user has not trusted its content. */
  readonly isTrusted: boolean;
  /** `sandbox.volumes`, with the protected paths in them. */
  readonly volumes: readonly PlannedVolume[];
  /** The states of the config file and of its trust record when they were read. Empty when there was no file. */
  readonly read: FileStates;
  /** Reads all layers again. */
  readonly reload: () => Promise<LoadedConfig>;
}

/**
 * Merges defaults, file, environment and flags. Each layer overrides the ones before it.
 * @throws ConfigError with all problems of all layers.
 */
export async function loadConfig(options: LoadOptions = {}): Promise<LoadedConfig> {
  return load(options, undefined);
}

/** @param pins At a reload: the settings files that are protected from sandboxes, as they were at the first load. */
async function load(options: LoadOptions, pins: Pins | undefined): Promise<LoadedConfig> {
  const { env = process.env, cwd = process.cwd() } = options;
  const sources = await readSources(options, { env, cwd });
  const { file, found, trusted, read } = sources;
  if (found.untrusted !== undefined && options.acceptsUntrusted !== true) throw found.untrusted;
  const { values, issues } = mergeLayers(sources.layers);
  const originOf = (path: string): Origin => values.get(path)?.origin ?? { layer: "default", source: "default" };

  const config = configSchema.parse(buildTree(values));
  const isBroken = (path: string): boolean =>
    issues.some(
      (issue) => issue.path === path || issue.path.startsWith(`${path}[`) || issue.path.startsWith(`${path}.`),
    );
  const dataFolder = config.sandbox.root === "" ? defaultDataFolder(env) : config.sandbox.root;
  const holdsSecrets = found.values.candidates.some(({ key, value }) => key.secret && !isEmpty(value));
  const trust = { file, holdsSecrets, lookedUp: resolve(cwd, CONFIG_FILE_NAME), env, trustFolder: trusted.folder };
  const files = checkFiles({ config, dataFolder, originOf, ...trust });
  const rules = checkRules({ config, originOf, isBroken });
  const problems = [...issues, ...rules, ...files.issues];
  const now = pinsOf([file ?? "", config.governance.policyFile], files.volumes);
  if (pins !== undefined) problems.push(...replacedFiles(pins, now));
  if (problems.length > 0) throw new ConfigError(problems);

  config.auth.jwt.publicKey = files.publicKeyPem;
  config.sandbox.root = dataFolder;
  const nextPins = pins ?? now;
  return {
    config: deepFreeze(config),
    sources: toSources(originOf),
    isTrusted: found.untrusted === undefined,
    volumes: files.volumes,
    read,
    reload: () => load(options, nextPins),
    ...(file === undefined ? {} : { file }),
  };
}

interface Sources {
  readonly file: string | undefined;
  readonly found: FileLayer;
  readonly trusted: TrustedFiles;
  readonly read: FileStates;
  readonly layers: readonly LayerValues[];
}

async function readSources(options: LoadOptions, { env, cwd }: Surroundings): Promise<Sources> {
  const { file, isNamed } = findFile(options, { env, cwd });
  const trusted = new TrustedFiles(env);
  const read = await statesOf(file === undefined ? [] : [file, ...(isNamed ? [] : [trusted.recordOf(file)])]);
  const found = await readFileLayer(file, isNamed ? undefined : trusted);
  const layers = [
    inFolder(found.values, file === undefined ? cwd : dirname(file)),
    inFolder(readEnvironment(env), cwd),
    inFolder(readFlags(options.flags ?? []), cwd),
  ];
  return { file, found, trusted, read, layers };
}

async function statesOf(paths: readonly string[]): Promise<FileStates> {
  return new Map(await Promise.all(paths.map(async (path) => [path, await fileState(path)] as const)));
}

interface FoundFile {
  readonly file: string | undefined;
  /** The user chose the file with `--config` or the environment variable, in any folder. */
  readonly isNamed: boolean;
}

interface Surroundings {
  readonly env: Environment;
  readonly cwd: string;
}

function findFile({ file, ignoresWorkingDirectory = false }: LoadOptions, { env, cwd }: Surroundings): FoundFile {
  const named = file ?? env[CONFIG_FILE_VARIABLE];
  if (named !== undefined && named !== "") return { file: resolve(cwd, named), isNamed: true };
  const usual = resolve(cwd, CONFIG_FILE_NAME);
  return { file: !ignoresWorkingDirectory && existsSync(usual) ? usual : undefined, isNamed: false };
}

interface FileLayer {
  readonly values: LayerValues;
  /** Set when the file was found, not named, and this user has not trusted its content. */
  readonly untrusted?: UntrustedConfigError;
}

/**
 * Reads the file once, so that the text compared with the trusted content is the text that is parsed. `trusted` is
 * absent for a named file.
 */
async function readFileLayer(file: string | undefined, trusted: TrustedFiles | undefined): Promise<FileLayer> {
  if (file === undefined) return { values: { candidates: [], issues: [] } };
  let text: string;
  try {
    // Reading a FIFO would block the start until another process opens it for writing.
    if (trusted !== undefined) assertFile(file);
    text = readConfigText(file);
  } catch (error) {
    if (error instanceof ConfigError) return { values: { candidates: [], issues: error.issues } };
    throw error;
  }
  const values = await parseConfigText(file, text);
  if (trusted === undefined || isConfigPlaceholder(text)) return { values };
  const trustedText = trusted.read(file);
  return trustedText === text
    ? { values }
    : { values, untrusted: new UntrustedConfigError({ file, text, trustedText }) };
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

/** The settings files in folders that sandboxes may write, with the identity of each file at the first load. */
export type Pins = ReadonlyMap<string, string>;

export function pinsOf(files: readonly string[], volumes: readonly PlannedVolume[]): Pins {
  const folders = volumes.filter(({ isReadOnly }) => !isReadOnly).map(({ hostPath }) => hostPath);
  const inside = files.filter(
    (file) => existsSync(file) && folders.some((folder) => isBelow(realpathSync(file), folder)),
  );
  return new Map(inside.map((file) => [file, identityOf(file)]));
}

/**
 * The read-only mount ends with the file that it covered. Until the server notices the replacement, a sandbox
 * can write to the new file. A change inside the mounted file can only come from the host.
 */
export function replacedFiles(pins: Pins, now: Pins): readonly ConfigIssue[] {
  const unprotected = [...now.keys()].filter((file) => !pins.has(file));
  const replaced = [...pins].filter(([file, identity]) => identityOf(file) !== identity).map(([file]) => file);
  return [
    ...unprotected.map((file) =>
      issueOf(file, "it lies in a folder that sandboxes may write, and is protected only from the next start on"),
    ),
    ...replaced.map((file) =>
      issueOf(
        file,
        "it was replaced by another file in a folder that sandboxes may write, so a sandbox may have changed it",
      ),
    ),
  ];
}

function issueOf(file: string, reason: string): ConfigIssue {
  return {
    path: file,
    reason,
    fix: "check it and restart the server; a change inside the same file is read without a restart",
    layer: "file",
    source: file,
  };
}

function identityOf(file: string): string {
  const stats = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? "missing" : `${stats.dev}:${stats.ino}`;
}
