import type { Language, OnOutput } from "../../contract/guest.ts";
import { randomBytes } from "node:crypto";
import { lstat, mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { templateFolder } from "../config/template-name.ts";
import { OwlError } from "../errors/owl-error.ts";
import { removeTree } from "./runtimes/host-files.ts";
import type { ConnectedInstance, InstanceOptions, InstanceStarter } from "./instance-starter.ts";

const INSTALL_TIMEOUT_MS = 30 * 60_000;
const SHORT_TIMEOUT_MS = 60_000;
const MAX_OUTPUT_CHARS = 200_000;
const PAGE_BYTES = 256 * 1024;
const NPM_LINE = /^npm (?:ERR!|error) ?/;
/** Lines of npm that do not describe the error. */
const NPM_ASIDE =
  /^(?:$|(?:code|errno|syscall|path|dest|command|argv|cwd|signal|file) |A complete log|.*-debug-0\.log)/;

/** The packages of a template. */
export interface TemplateRecipe {
  readonly name: string;
  readonly language: Language;
  /** Lines as in a requirements file. */
  readonly python: readonly string[];
  /** As after `npm install`. */
  readonly node: readonly string[];
  /** Package files on this machine; `python` and `node` name them by their base name. */
  readonly files: readonly string[];
  readonly allow: readonly string[];
  readonly isReplacing: boolean;
}

interface BuildOptions {
  readonly starter: InstanceStarter;
  readonly dataFolder: string;
  readonly workspacePath: string;
  readonly recipe: TemplateRecipe;
  readonly onOutput: OnOutput;
  readonly signal: AbortSignal;
}

export interface BuildResult {
  readonly folder: string;
  readonly packages: readonly string[];
  readonly sizeBytes: number;
}

/** Package managers run code of packages, so they run in a sandbox with two empty folders and access to the registries. */
export async function buildTemplate(options: BuildOptions): Promise<BuildResult> {
  const { dataFolder, recipe } = options;
  const target = templateFolder(dataFolder, recipe.name);
  if (!recipe.isReplacing && (await isThere(target))) {
    throw new OwlError("invalid_params", `there is a template "${recipe.name}" already`, {
      hint: "choose another name, or build it again with --replace",
    });
  }
  const building = templateFolder(dataFolder, `.building-${randomBytes(8).toString("hex")}`);
  const folders = { python: join(building, "python"), node: join(building, "node_modules") };
  try {
    for (const folder of Object.values(folders)) await mkdir(folder, { recursive: true, mode: 0o755 });
    const packages = await install(options, folders);
    for (const folder of Object.values(folders)) await assertFolder(folder);
    const sizeBytes = (await sizeOf(folders.python)) + (await sizeOf(folders.node));
    const manifest = { language: recipe.language, packages, sizeBytes, builtAt: new Date().toISOString() };
    await writeFile(join(building, "template.json"), `${JSON.stringify(manifest, null, 2)}\n`, { flag: "wx" });
    await putInPlace(building, target);
    return { folder: target, packages, sizeBytes };
  } finally {
    await removeTree(building);
  }
}

interface Folders {
  readonly python: string;
  readonly node: string;
}

async function install(options: BuildOptions, folders: Folders): Promise<readonly string[]> {
  const { starter, recipe, signal } = options;
  const own = { isReadOnly: false, isOwn: true };
  const parts: InstanceOptions = {
    template: "python",
    flavor: "large",
    env: {},
    volumes: [
      { hostPath: folders.python, guestPath: "/build/python", ...own },
      { hostPath: folders.node, guestPath: "/build/node_modules", ...own },
    ],
    network: { allow: recipe.allow },
  };
  const { plan, instance } = await starter.openNew(parts, signal);
  try {
    for (const file of recipe.files) await copyIn(instance, file, signal);
    return [...(await installPython(instance, options)), ...(await installNode(instance, options))];
  } finally {
    await instance.close();
    await starter.discard(plan);
  }
}

async function installPython(instance: ConnectedInstance, options: BuildOptions): Promise<readonly string[]> {
  if (options.recipe.python.length === 0) return [];
  await write(instance, "requirements.txt", `${options.recipe.python.join("\n")}\n`);
  const pip = "python3 -m pip --disable-pip-version-check --no-input";
  await run(instance, options, `${pip} install --no-cache-dir --target /build/python -r requirements.txt`);
  const listed = await run(instance, options, `${pip} list --path /build/python --format freeze`);
  return lines(listed).map((line) => line.replace("==", " "));
}

async function installNode(instance: ConnectedInstance, options: BuildOptions): Promise<readonly string[]> {
  if (options.recipe.node.length === 0) return [];
  await write(instance, "packages.txt", options.recipe.node.join("\n"));
  const flags = "--no-audit --no-fund --no-update-notifier --loglevel=http";
  await run(instance, options, `xargs -d '\\n' npm install ${flags} -- < packages.txt`);
  await run(instance, options, "cp -a node_modules/. /build/node_modules/");
  const listed = await run(instance, options, "npm ls --depth=0 --parseable --long | tail -n +2 | cut -d: -f2");
  return lines(listed).map((line) => line.replace(/@([^@]*)$/, " $1"));
}

/** Commands are constants: values of the recipe are passed in files. */
async function run(instance: ConnectedInstance, { onOutput, signal }: BuildOptions, command: string): Promise<string> {
  const { callId, stop } = instance.client.listen(onOutput);
  const limits = { callId, timeoutMs: INSTALL_TIMEOUT_MS, maxOutputChars: MAX_OUTPUT_CHARS };
  try {
    const { exitCode, stdout, stderr } = await instance.client.request(
      "shell.exec",
      { ...limits, command, background: false },
      { timeoutMs: INSTALL_TIMEOUT_MS + SHORT_TIMEOUT_MS, signal },
    );
    signal.throwIfAborted();
    if (exitCode === 0) return stdout.text;
    const reason = installFailure(stderr.text) ?? `exit code ${exitCode ?? "none"}`;
    throw new OwlError("tool_failure", `the packages could not be installed: ${reason.slice(0, 500)}`, {
      hint: "read the output above; hosts beyond the package registries need --allow",
    });
  } finally {
    stop();
  }
}

async function copyIn(instance: ConnectedInstance, file: string, signal: AbortSignal): Promise<void> {
  const bytes = await readFile(file);
  for (let start = 0; start === 0 || start < bytes.length; start += PAGE_BYTES) {
    signal.throwIfAborted();
    const content = bytes.subarray(start, start + PAGE_BYTES).toString("base64");
    const mode = start === 0 ? "overwrite" : "append";
    const params = { path: basename(file), content, encoding: "base64", mode } as const;
    await instance.client.request("file.write", params, { timeoutMs: SHORT_TIMEOUT_MS, signal });
  }
}

async function write(instance: ConnectedInstance, path: string, content: string): Promise<void> {
  const params = { path, content, encoding: "utf-8", mode: "overwrite" } as const;
  await instance.client.request("file.write", params, { timeoutMs: SHORT_TIMEOUT_MS });
}

/** Rejects a link: it would be followed when sandboxes start from the template. */
async function assertFolder(path: string): Promise<void> {
  if ((await lstat(path)).isDirectory()) return;
  throw new OwlError("tool_failure", `the build has replaced a folder: ${basename(path)}`);
}

async function sizeOf(folder: string): Promise<number> {
  let total = 0;
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    total += entry.isDirectory() ? await sizeOf(path) : (await lstat(path)).size;
  }
  return total;
}

/** Running sandboxes keep the old tree. */
async function putInPlace(building: string, target: string): Promise<void> {
  const old = `${building}-old`;
  if (await isThere(target)) await rename(target, old);
  await rename(building, target);
  await removeTree(old);
}

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined;
}

function lines(text: string): readonly string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

/** The line of a package manager's output that describes the error: the last of pip, the first of npm that is about the packages. */
function installFailure(stderr: string): string | undefined {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  const ofNpm = lines.filter((line) => NPM_LINE.test(line)).map((line) => line.replace(NPM_LINE, "").trim());
  const ofPip = lines.filter((line) => line.startsWith("ERROR:"));
  const code = ofNpm.find((line) => line.startsWith("code "));
  return ofNpm.find((line) => !NPM_ASIDE.test(line)) ?? code ?? ofPip.at(-1) ?? lines.at(-1);
}
