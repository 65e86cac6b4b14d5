import { statSync } from "node:fs";
import { dirname } from "node:path";
import { isDynamicPattern } from "tinyglobby";
import { assertFewValues } from "../../sandbox/guest-connection.ts";
import type { InstanceStarter } from "../../sandbox/instance-starter.ts";
import type { HandlerLanguage } from "../generation.ts";
import type { LaunchedWorker } from "./launched-worker.ts";
import { SANDBOXED_FILES } from "./worker-protocol.ts";

const START_TIMEOUT_MS = 60_000;

/**
 * The protocol moves to descriptors 3 and 4 before the interpreter starts, and both interpreters close those in their
 * children: what a handler prints goes to stderr, and no output of a handler or of its children is a frame.
 */
const MOVE_PROTOCOL = "exec 3<&0 4>&1 0</dev/null 1>&2";

/** The guest's folder inside, which has the workers beside the guest. The shell finds the interpreters of the sandbox. */
const PROGRAMS: Readonly<Record<HandlerLanguage, string>> = {
  node: `${MOVE_PROTOCOL}; exec node /opt/owlclaw/handler-worker.mjs pair '' /opt/owlclaw/owlclaw.mjs`,
  python: `${MOVE_PROTOCOL}; exec python3 -u -m owlclaw.worker pair`,
};

export interface SandboxedOptions {
  readonly openProgram: InstanceStarter["openProgram"];
  /** Files, folders or globs, absolute. */
  readonly paths: readonly string[];
}

/** Starts a worker in a cell of its own: no network, nothing of the server, and the handlers' folders to read. */
export async function launchInSandbox(
  language: HandlerLanguage,
  { openProgram, paths }: SandboxedOptions,
): Promise<LaunchedWorker> {
  const volumes = rootsOf(paths).map((hostPath) => ({
    hostPath,
    guestPath: `${SANDBOXED_FILES}${hostPath}`,
    isReadOnly: true,
  }));
  const program = await openProgram(
    {
      program: ["/bin/sh", "-c", PROGRAMS[language]],
      volumes,
      env: { PYTHONPATH: "/opt/owlclaw/handlers-python", PYTHONDONTWRITEBYTECODE: "1" },
    },
    AbortSignal.timeout(START_TIMEOUT_MS),
  );
  const { instance } = program;
  return {
    stream: instance.stream,
    outputs: [{ name: "stderr", stream: instance.diagnostics }],
    exited: instance.exited.then(({ code, signal, reason }) => ({
      code,
      signal,
      ...(reason === "memory" && { reason: "it used more memory than its sandbox allows" }),
    })),
    cleared: instance.exited.then(() => program.close()),
    assertLine: (line) => assertFewValues(Buffer.from(line)),
    pathPrefix: SANDBOXED_FILES,
    kill: () => void instance.stop(),
  };
}

/** The folders that hold the files, without those that lie in another one. */
export function rootsOf(paths: readonly string[]): readonly string[] {
  const folders = paths.filter((path) => !path.startsWith("!")).map(folderOf);
  const unique = [...new Set(folders)].sort();
  return unique.filter((folder) => !unique.some((other) => other !== folder && folder.startsWith(`${other}/`)));
}

function folderOf(path: string): string {
  let folder = path;
  while (isDynamicPattern(folder)) folder = dirname(folder);
  return statSync(folder, { throwIfNoEntry: false })?.isFile() === true ? dirname(folder) : folder;
}
