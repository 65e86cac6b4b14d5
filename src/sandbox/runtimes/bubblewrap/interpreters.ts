import { realpath } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { z } from "zod";
import { OwlError } from "../../../errors/owl-error.ts";
import { isThere } from "../host-files.ts";
import { runTool, TOOL_FOLDERS } from "../run-tool.ts";

const VISIBLE = /^\/(usr|bin|sbin|lib|lib32|lib64|libx32)\//;
const PYTHON_QUESTION = "import sys,json;print(json.dumps([sys.executable,sys.prefix,sys.base_prefix]))";
/** Long, because a server without an answer has no Python until its next start. */
const PYTHON_TIMEOUT_MS = 30_000;

/** A path outside the system tree that an interpreter needs; it is mounted inside at the same path. */
interface InterpreterTree {
  readonly hostPath: string;
  readonly kind: "folder" | "file";
}

export interface Interpreter {
  readonly executable: string;
  readonly trees: readonly InterpreterTree[];
}
const pythonAnswerSchema = z.tuple([z.string(), z.string(), z.string()]);

/** The Node that runs the server also runs the guest, also when a version manager installed it. */
export async function findNode(executable: string): Promise<Interpreter> {
  const real = await realpath(executable);
  if (VISIBLE.test(real)) return { executable: real, trees: [] };
  const prefix = dirname(dirname(real));
  const isInstallation = join(prefix, "bin", "node") === real && (await isThere(join(prefix, "lib", "node_modules")));
  return { executable: real, trees: [isInstallation ? folder(prefix) : { hostPath: real, kind: "file" }] };
}

/** A browser outside the system tree is mounted with its whole folder, which has its libraries and data. */
export async function findBrowser(executable: string): Promise<Interpreter | undefined> {
  if (executable === "") return undefined;
  const real = await realpath(executable).catch(() => undefined);
  // Chromium has this file beside it: no other folder can be mounted by this setting.
  if (real === undefined || !(await isThere(join(dirname(real), "icudtl.dat")))) {
    throw new OwlError("sandbox_unavailable", `there is no Chromium at ${executable}`, {
      hint: "Name the program itself in sandbox.browser.executable, as in /opt/google/chrome/chrome, or leave it out to use the system's Chromium.",
    });
  }
  return { executable: real, trees: VISIBLE.test(real) ? [] : [folder(dirname(real))] };
}

/**
 * The interpreter itself: a version manager's `python3` on the PATH is a script that does not work inside. The system's
 * Python comes first: packages of the system are installed for it.
 */
export async function findPython(options: {
  readonly python?: string;
  readonly searchPath?: string;
}): Promise<Interpreter | undefined> {
  const onPath = (options.searchPath ?? "").split(delimiter).filter((part) => part.startsWith("/"));
  const candidates =
    options.python === undefined
      ? [...TOOL_FOLDERS.toReversed(), ...onPath].map((part) => join(part, "python3"))
      : [options.python];
  for (const candidate of candidates) {
    const found = await askPython(candidate, options.searchPath);
    if (found !== undefined) return found;
  }
  return undefined;
}

async function askPython(candidate: string, searchPath: string | undefined): Promise<Interpreter | undefined> {
  if (!(await isThere(candidate))) return undefined;
  const answer = await runTool({
    command: candidate,
    args: ["-I", "-c", PYTHON_QUESTION],
    // The script of a version manager looks for its manager on the PATH.
    env: searchPath === undefined ? {} : { PATH: searchPath },
    timeoutMs: PYTHON_TIMEOUT_MS,
  });
  if (answer.code !== 0) return undefined;
  const [executable, prefix, basePrefix] = pythonAnswerSchema.parse(JSON.parse(answer.stdout));
  const outside = [...new Set([prefix, basePrefix])].filter((path) => !VISIBLE.test(`${path}/`));
  // A prefix this close to the root would mount more than an interpreter.
  if (outside.some((path) => path.split("/").length < 3)) return undefined;
  return { executable, trees: outside.map(folder) };
}

function folder(hostPath: string): InterpreterTree {
  return { hostPath, kind: "folder" };
}
