import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { OwlError } from "../../errors/owl-error.ts";
import type { ProcessCommand } from "../workers/launch-process.ts";

const VERSION_CHECK = "import sys; sys.exit(0 if sys.version_info >= (3, 9) else 9)";
const CHECK_TIMEOUT_MS = 10_000;
const TOO_OLD = 9;

/** `python -m` would search the working directory first, which sandboxes may be able to write. */
const RUN_WORKER = `import sys; sys.path[:] = [path for path in sys.path if path]; import runpy; runpy.run_module("owlclaw.worker", run_name="__main__", alter_sys=True)`;

/** The folder of the Python package `owlclaw`, on the module path of workers. */
export const PYTHON_FOLDER: string = fileURLToPath(new URL(".", import.meta.url));

interface PythonOptions {
  /** `handlers.python`: a program, the folder of a virtualenv, or empty. */
  readonly python: string;
  readonly env: ProcessCommand["env"];
}

export async function pythonWorkerCommand({
  python,
  env,
  cacheFolder,
}: PythonOptions & { readonly cacheFolder: string }): Promise<ProcessCommand> {
  const program = await findPython({ python, env });
  const before = env["PYTHONPATH"];
  const pythonPath = before === undefined || before === "" ? PYTHON_FOLDER : `${PYTHON_FOLDER}${delimiter}${before}`;
  return {
    program,
    args: ["-u", "-c", RUN_WORKER, "fd"],
    env: {
      ...env,
      PYTHONPATH: pythonPath,
      PYTHONPYCACHEPREFIX: join(cacheFolder, "python"),
      PYTHONUNBUFFERED: "1",
      PYTHONIOENCODING: "utf-8",
    },
  };
}

const found = new Map<string, Promise<string>>();

/** Runs a candidate before using it: a version manager's shim on the PATH may not work. */
export function findPython(options: PythonOptions): Promise<string> {
  const key = `${options.python}\0${options.env["PATH"] ?? ""}`;
  let finding = found.get(key);
  if (finding === undefined) {
    finding = search(options);
    found.set(key, finding);
    finding.catch(() => found.delete(key));
  }
  return finding;
}

async function search({ python, env }: PythonOptions): Promise<string> {
  const candidates = python === "" ? onPath(["python3", "python"], env) : configured(python, env);
  const reasons: string[] = [];
  for (const candidate of candidates) {
    const reason = await complaint(candidate, env);
    if (reason === undefined) return candidate;
    reasons.push(`${candidate}: ${reason}`);
  }
  const wanted = python === "" ? "python3 on the PATH" : python;
  throw new OwlError(
    "execution_error",
    `there is no Python 3.9 or later at ${wanted} (${reasons.join("; ") || "nothing found"})`,
    {
      hint: "Install Python 3.9 or later, or set handlers.python to an interpreter or a virtualenv's folder.",
    },
  );
}

function configured(python: string, env: ProcessCommand["env"]): readonly string[] {
  const inEnvironment = [
    join(python, "bin", "python3"),
    join(python, "bin", "python"),
    join(python, "Scripts", "python.exe"),
  ];
  const within = inEnvironment.filter((path) => existsSync(path));
  if (within.length > 0) return within;
  // No fallback: another Python would have other packages.
  return basename(python) === python ? onPath([python], env) : [python].filter((path) => existsSync(path));
}

function onPath(names: readonly string[], env: ProcessCommand["env"]): readonly string[] {
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).filter((path) => existsSync(path));
}

async function complaint(program: string, env: ProcessCommand["env"]): Promise<string | undefined> {
  try {
    await promisify(execFile)(program, ["-I", "-c", VERSION_CHECK], { env, timeout: CHECK_TIMEOUT_MS });
    return undefined;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === TOO_OLD) return "it is older than 3.9";
    return error instanceof Error ? error.message.split("\n").slice(0, 2).join(" ").slice(0, 300) : String(error);
  }
}
