import { readFileSync, type Stats, statSync } from "node:fs";
import { basename, resolve, join } from "node:path";
import { loadConfig } from "../config/load.ts";
import { STOCK_TEMPLATE_NAMES, TEMPLATE_NAME, templateFolder } from "../config/template-name.ts";
import { type TemplateRecipe, type BuildResult, buildTemplate } from "../sandbox/build-template.ts";
import { type CommandCall, UsageError } from "./command.ts";
import { quietLogger } from "./command-logger.ts";
import { toLoadOptions } from "./config-flags.ts";
import { jsonText, withoutTerminalControls } from "./text.ts";
import { rm, stat } from "node:fs/promises";
import type { Config } from "../config/schema.ts";
import type { OnOutput } from "../../contract/guest.ts";
import { InstanceStarter } from "../sandbox/instance-starter.ts";
import { Templates, type Template } from "../sandbox/templates.ts";
import type { Logger } from "../telemetry/logger.ts";
import { chooseRuntimes } from "../sandbox/choose-runtime.ts";
import { openEgress } from "../sandbox/open-egress.ts";
import { openRuntime } from "../sandbox/open-runtime.ts";
import { renderTable } from "./table.ts";

/** File types that a package manager can install. */
const PACKAGE_FILE = /\.(whl|tar\.gz|tgz|zip)$/;
/** A path, as opposed to a package name in a registry or a URL. */
const LOCAL_PATH = /^(?:\.{1,2}$|\.{0,2}\/|~|file:)/;
const MIB = 1024 ** 2;

export async function templateBuildCommand({ terminal, args, flags }: CommandCall): Promise<number> {
  const recipe = toRecipe(args[0] ?? "", flags);
  const loaded = await loadConfig(toLoadOptions(flags));
  const abort = new AbortController();
  const interrupt = (): void => abort.abort(new Error("interrupted"));
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  try {
    const { folder, packages, sizeBytes } = await buildInWorkshop({
      config: loaded.config,
      logger: quietLogger(loaded, terminal),
      recipe,
      onOutput: ({ text }) => terminal.err(terminal.errIsTty ? withoutTerminalControls(text) : text),
      signal: abort.signal,
    });
    if (flags["json"] === true) {
      terminal.out(jsonText({ name: recipe.name, folder, packages, sizeBytes }));
    } else {
      terminal.out(`Built ${recipe.name}: ${packages.join(", ")} (${(sizeBytes / MIB).toFixed(1)} MiB).\n`);
      terminal.out(`Servers that start from now on offer it: sandbox_create {"template": "${recipe.name}"}\n`);
    }
    return 0;
  } finally {
    process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
  }
}

function toRecipe(name: string, flags: CommandCall["flags"]): TemplateRecipe {
  if (!TEMPLATE_NAME.test(name) || STOCK_TEMPLATE_NAMES.includes(name)) {
    throw new UsageError(
      `"${name}" cannot name a template: use lower-case letters, digits, - or _, at most 40, and not ${STOCK_TEMPLATE_NAMES.join(" or ")}`,
    );
  }
  const python = [...texts(flags["python"]), ...requirementLines(flags["requirements"])].map(toSpec);
  const node = texts(flags["node"]).map(toSpec);
  if (python.length + node.length === 0) {
    throw new UsageError("a template needs packages: name some with --python, --requirements or --node");
  }
  const all = [...python, ...node];
  const registries = [
    ...(python.some(({ file }) => file === undefined) ? ["pip"] : []),
    ...(node.some(({ file }) => file === undefined) ? ["npm"] : []),
  ];
  return {
    name,
    language:
      flags["language"] === "node" || (flags["language"] === undefined && python.length === 0) ? "node" : "python",
    python: python.map(({ spec }) => spec),
    node: node.map(({ spec }) => spec),
    files: all.flatMap(({ file }) => (file === undefined ? [] : [file])),
    allow: [...new Set([...registries, ...texts(flags["allow"])])],
    isReplacing: flags["replace"] === true,
  };
}

/** A package file of this machine is copied into the sandbox, where its base name identifies it. */
function toSpec(text: string): { readonly spec: string; readonly file?: string } {
  if (text.startsWith("-")) throw new UsageError(`"${text}" is no package: options of pip and npm are not taken`);
  if (/[\0\r\n]/.test(text)) throw new UsageError(`${JSON.stringify(text)} is no package`);
  const found = statSync(text, { throwIfNoEntry: false });
  if (PACKAGE_FILE.test(text) && found?.isFile() === true) return { spec: `./${basename(text)}`, file: resolve(text) };
  if (LOCAL_PATH.test(text)) throw new UsageError(whyNoPackage(text, found));
  return { spec: text };
}

/** The sandbox that builds sees no other files of this machine, so the package managers would not find the path. */
function whyNoPackage(text: string, found: Stats | undefined): string {
  if (found === undefined) return `there is no file "${text}"`;
  if (found.isDirectory())
    return `"${text}" is a folder, and a package is a file: make one with npm pack, or with pip wheel --no-deps, and name that`;
  return `"${text}" is no package file: those end in .whl, .tar.gz, .tgz or .zip`;
}

function requirementLines(file: unknown): readonly string[] {
  if (typeof file !== "string") return [];
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(`the requirements cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  return text
    .split(/\r?\n/)
    .map((line) => line.replace(/(^|\s)#.*$/, "").trim())
    .filter((line) => line !== "");
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : [];
}

export async function templateRemoveCommand({ terminal, args, flags }: CommandCall): Promise<number> {
  const name = args[0] ?? "";
  const { config } = await loadConfig(toLoadOptions(flags));
  const folder = templateFolder(config.sandbox.root, name);
  const isThere = TEMPLATE_NAME.test(name) && (await stat(folder).catch(() => undefined)) !== undefined;
  if (!isThere) throw new UsageError(`no template "${name}" was built: owlclaw mcp-server template list shows them`);
  await rm(folder, { recursive: true, force: true });
  terminal.out(`Removed ${name}.\n`);
  return 0;
}

export interface WorkshopOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly recipe: TemplateRecipe;
  readonly onOutput: OnOutput;
  readonly signal: AbortSignal;
}

/** Opens the runtime and the network for a build, without a server, and closes them again. */
export async function buildInWorkshop(options: WorkshopOptions): Promise<BuildResult> {
  const { logger, recipe, onOutput, signal } = options;
  const { sandbox, guest } = options.config;
  const config = {
    ...options.config,
    sandbox: { ...sandbox, network: { ...sandbox.network, allow: recipe.allow, templates: {} } },
  };
  const templates = new Templates();
  const runtimes = await chooseRuntimes({ config, logger, templates }, openRuntime);
  try {
    const egress = await openEgress({ config, logger });
    try {
      const starter = new InstanceStarter({
        runtime: runtimes.usual,
        logger,
        templates,
        workspacePath: sandbox.workspace,
        maxFrameBytes: guest.maxFrameBytes,
        folder: join(sandbox.root, "sandboxes"),
        openEgress: (instanceId, allow) => egress.open(instanceId, allow),
      });
      const { root: dataFolder, workspace: workspacePath } = sandbox;
      return await buildTemplate({ starter, dataFolder, workspacePath, recipe, onOutput, signal });
    } finally {
      await egress.close();
    }
  } finally {
    await runtimes.close();
  }
}

export async function templateListCommand({ terminal, flags }: CommandCall): Promise<number> {
  const loaded = await loadConfig(toLoadOptions(flags));
  const { readTemplates } = await import("../sandbox/templates.ts");
  const known = await readTemplates(loaded.config.sandbox, quietLogger(loaded, terminal));
  const templates = known.names.map((name) => known.get(name));
  if (flags["json"] === true) {
    terminal.out(jsonText({ templates: templates.map(toJson) }));
    return 0;
  }
  const rows = templates.map(({ name, language, built }) => [
    name === loaded.config.sandbox.template ? `${name} (default)` : name,
    language,
    built === undefined ? "the system's own" : built.packages.join(", "),
    built === undefined ? "" : `${(built.sizeBytes / MIB).toFixed(1)} MiB`,
    built?.builtAt.slice(0, 16).replace("T", " ") ?? "",
  ]);
  const columns = ["NAME", "LANGUAGE", "PACKAGES", "SIZE", "BUILT"];
  terminal.out(renderTable({ columns, rows, width: terminal.width, color: terminal.outColor }));
  return 0;
}

function toJson({ name, language, built }: Template): Record<string, unknown> {
  return { name, language, ...built };
}
