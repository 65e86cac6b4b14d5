import { statSync } from "node:fs";
import { dirname } from "node:path";
import { isDynamicPattern } from "tinyglobby";
import { assertFewValues } from "../../sandbox/guest-connection.ts";
import type { InstanceStarter } from "../../sandbox/instance-starter.ts";
import type { HandlerLanguage } from "../generation.ts";
import type { LaunchedWorker } from "./launch-process.ts";
import { SANDBOXED_FILES } from "./worker-protocol.ts";

const START_TIMEOUT_MS = 60_000;

/**
 * The protocol moves to descriptors 3 and 4 before the interpreter starts, and both interpreters close those in their
 * children. So output of a handler or of its children goes to stderr and is never read as a message.
 */
const MOVE_PROTOCOL = "exec 3<&0 4>&1 0</dev/null 1>&2";

/** The worker programs in the guest's folder. The shell finds the sandbox's interpreters. */
const PROGRAMS: Readonly<Record<HandlerLanguage, string>> = {
  node: `${MOVE_PROTOCOL}; exec node /opt/owlclaw/handler-worker.mjs pair '' /opt/owlclaw/owlclaw.mjs`,
  python: `${MOVE_PROTOCOL}; exec python3 -u -m owlclaw.worker pair`,
};

interface SandboxedOptions {
  readonly openProgram: InstanceStarter["openProgram"];
  /** Files, folders or globs, absolute. */
  readonly paths: readonly string[];
}

/** Starts a worker in an instance of its own: no network, no files of the server, and the handlers' folders read-only. */
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

/** The folders that contain the files, without nested ones. */
function rootsOf(paths: readonly string[]): readonly string[] {
  const folders = paths.filter((path) => !path.startsWith("!")).map(folderOf);
  const unique = [...new Set(folders)].sort();
  return unique.filter((folder) => !unique.some((other) => other !== folder && folder.startsWith(`${other}/`)));
}

function folderOf(path: string): string {
  let folder = path;
  while (isDynamicPattern(folder)) folder = dirname(folder);
  return statSync(folder, { throwIfNoEntry: false })?.isFile() === true ? dirname(folder) : folder;
}
