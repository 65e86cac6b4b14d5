import {
  existsSync,
  realpathSync,
  statSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, delimiter, dirname, isAbsolute, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { globSync, isDynamicPattern } from "tinyglobby";
import { isPem, defaultDataFolder } from "./resolve-paths.ts";
import type { Config } from "./schema.ts";
import type { Environment } from "./text-layers.ts";
import { createHash } from "node:crypto";

/** A path whose content decides what the server does. A sandbox that could write there would control the server. */
export interface TrustedPath {
  readonly path: string;
  /** Its name in messages: a key of the configuration, or a short description. */
  readonly role: string;
  readonly kind: "file" | "folder";
  /** Sandboxes must not even read it. */
  readonly isSecret?: boolean;
  /** Files in the folder must not have a second hard link: through it a sandbox could bypass the protection. */
  readonly hasSingleNames?: boolean;
  /**
   * What the server creates when nothing exists at the path, so that no sandbox can create it: the text of a file, or
   * an empty folder.
   */
  readonly placeholder?: string;
}

export interface TrustSurroundings {
  readonly config: Config;
  /** The configuration file in use. */
  readonly file: string | undefined;
  readonly holdsSecrets: boolean;
  /** Where the next server started in this working directory looks for its configuration. */
  readonly lookedUp: string;
  readonly env: Environment;
}

const CONFIG_PLACEHOLDER = `# OwlClaw made this file, because sandboxes may write to this folder: no sandbox can make or change it.
# Settings that you write here count after \`owlclaw mcp-server trust\`.
`;
const PACKAGE_PLACEHOLDER = "{}\n";
const SECRET_FOLDER = { kind: "folder", isSecret: true, hasSingleNames: true } as const;
/** Variables with lists of folders that are searched for programs and modules. */
const SEARCHED = ["PATH", "PYTHONPATH", "NODE_PATH"];
/** Whether the file is the placeholder that the server created. */
export function isConfigPlaceholder(text: string): boolean {
  return text === CONFIG_PLACEHOLDER;
}

/** All paths outside the data folder whose content the server trusts. */
export function trustedPaths(surroundings: TrustSurroundings): readonly TrustedPath[] {
  const { config, file, holdsSecrets, lookedUp } = surroundings;
  return [
    ...(file === undefined
      ? []
      : [{ path: file, role: "the configuration file", kind: "file", isSecret: holdsSecrets } as const]),
    ...(file === lookedUp
      ? []
      : [
          {
            path: lookedUp,
            role: "the place of a configuration file",
            kind: "file",
            placeholder: CONFIG_PLACEHOLDER,
          } as const,
        ]),
    ...namedFiles(config),
    ...handlers(config),
    ...programs(surroundings),
    ...installation(),
  ];
}

function namedFiles({ governance, skills, http, auth, ledger, logging, sandbox }: Config): readonly TrustedPath[] {
  const { publicKey } = auth.jwt;
  const found: readonly TrustedPath[] = [
    { path: governance.policyFile, role: "governance.policyFile", kind: "file" },
    { path: skills.dir, role: "skills.dir", kind: "folder", hasSingleNames: true },
    { path: http.tls.certFile, role: "http.tls.certFile", kind: "file" },
    { path: http.tls.keyFile, role: "http.tls.keyFile", kind: "file", isSecret: true },
    { path: isPem(publicKey) ? "" : publicKey, role: "auth.jwt.publicKey", kind: "file" },
    { path: ledger.keyFolder, role: "ledger.keyFolder", ...SECRET_FOLDER, placeholder: "" },
    // The server writes there with its own permissions: a symbolic link in its place would redirect the writes.
    { path: logging.file === "" ? "" : dirname(logging.file), role: "logging.file", kind: "folder" },
    { path: sandbox.docker.certFolder, role: "sandbox.docker.certFolder", ...SECRET_FOLDER },
  ];
  return found.filter(({ path }) => path !== "");
}

/** The folders with handlers, and the folders in which Node resolves the packages that their scripts import. */
function handlers({ handlers: { paths } }: Config): readonly TrustedPath[] {
  const roots = paths.filter((path) => !path.startsWith("!")).map(withoutPattern);
  const scripts = roots.filter(holdsScripts);
  return [
    ...roots.map((path) => fileOrFolder(path, "handlers.paths")),
    ...[...new Set(scripts.flatMap(foldersAbove))].flatMap((folder) => [
      { path: join(folder, "node_modules"), role: "packages of handlers", kind: "folder", placeholder: "" } as const,
      {
        path: join(folder, "package.json"),
        role: "the package of handlers",
        kind: "file",
        placeholder: PACKAGE_PLACEHOLDER,
      } as const,
      // The TypeScript compiler reads it for the types of handlers.
      ...(existsSync(join(folder, "tsconfig.json"))
        ? [{ path: join(folder, "tsconfig.json"), role: "the types of handlers", kind: "file" } as const]
        : []),
    ]),
  ];
}

function withoutPattern(path: string): string {
  let folder = path;
  while (isDynamicPattern(folder)) folder = dirname(folder);
  return folder;
}

function holdsScripts(root: string): boolean {
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory() !== true) return /\.m?[jt]s$/.test(root);
  return globSync("**/*.{ts,mts,js,mjs}", { cwd: root, ignore: ["**/node_modules/**"] }).length > 0;
}

function foldersAbove(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...foldersAbove(parent)];
}

function fileOrFolder(path: string, role: string): TrustedPath {
  const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  return { path, role, kind: isFile ? "file" : "folder" };
}

/** Interpreters, and the folders in which they and their modules are looked up. */
function programs({ config, env, lookedUp }: TrustSurroundings): readonly TrustedPath[] {
  const { python } = config.handlers;
  const named = [python, config.sandbox.browser.executable].filter(isAbsolute);
  const searched = SEARCHED.flatMap((name) => {
    const value = env[name] ?? "";
    // An empty or relative entry is resolved against the working directory.
    const folders = value === "" ? [] : value.split(delimiter).map((path) => resolve(dirname(lookedUp), path));
    return folders.map((path) => ({ path: prefixOf(path), role: name, kind: "folder", placeholder: "" }) as const);
  });
  return [...named.map((path) => fileOrFolder(environmentOf(path), "a program of the configuration")), ...searched];
}

/** An environment is trusted as a whole, because its interpreter runs the modules in it. */
function environmentOf(program: string): string {
  const folder = dirname(program);
  const prefix = prefixOf(folder);
  return prefix === folder ? program : prefix;
}

/**
 * Returns the parent of `bin` when it is a Python environment: it contains modules, or a file that marks an
 * environment. Otherwise returns the folder.
 */
function prefixOf(folder: string): string {
  const prefix = dirname(folder);
  // System folders, which no sandbox may write anyway.
  if (basename(folder) !== "bin" || prefix === "/" || /^\/usr(?:\/|$)/.test(prefix)) return folder;
  const isEnvironment = ["pyvenv.cfg", "conda-meta"].some((name) => existsSync(join(prefix, name)));
  return isEnvironment || globSync("lib/python3*/os.py", { cwd: prefix }).length > 0 ? prefix : folder;
}

/** OwlClaw's code, the packages that it imports, and the Node that runs it. */
function installation(): readonly TrustedPath[] {
  // The package root is one folder above both `src/` and `dist/`.
  const root = realpathSync(fileURLToPath(new URL("../..", import.meta.url)));
  const parts = root.split(sep);
  const at = parts.indexOf("node_modules");
  const path = at === -1 ? root : parts.slice(0, at + 1).join(sep);
  return [
    { path, role: "OwlClaw's installation", kind: "folder" },
    { path: realpathSync(process.execPath), role: "the Node that runs OwlClaw", kind: "file" },
  ];
}

/**
 * The records of configuration files that this user has trusted, with their whole content. They are in the user's own
 * data folder: a configuration file cannot choose another one.
 */
export class TrustedFiles {
  readonly folder: string;

  constructor(env: Environment) {
    // A relative path is ignored: it would be a folder of the working directory, which could contain forged records.
    const named = [env["MCP_SERVER_SANDBOX_ROOT"], env["SANDBOX_ROOT"]].find(
      (path) => path !== undefined && isAbsolute(path),
    );
    this.folder = join(named ?? defaultDataFolder(env), "trusted");
  }

  /**
   * The path of the record for this file. A symbolic link has its own record: paths in the file are relative to the
   * location of the link, not of its target.
   */
  recordOf(file: string): string {
    const path = join(realpathSync(dirname(file)), basename(file));
    return join(this.folder, `${createHash("sha256").update(path).digest("hex")}.yaml`);
  }

  /** The content that was trusted last; `undefined` when this path never was trusted. */
  read(file: string): string | undefined {
    try {
      return readFileSync(this.recordOf(file), "utf8");
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    }
  }

  /** Returns whether there was a record. */
  remove(file: string): boolean {
    const record = this.recordOf(file);
    const isThere = existsSync(record);
    rmSync(record, { force: true });
    return isThere;
  }

  trust(file: string, text: string): void {
    const record = this.recordOf(file);
    mkdirSync(dirname(record), { recursive: true, mode: 0o700 });
    const fresh = `${record}.${process.pid}`;
    writeFileSync(fresh, text, { mode: 0o600, flush: true });
    renameSync(fresh, record);
  }
}
