import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { toOwlError } from "../../errors/owl-error.ts";
import { GUEST_FOLDER } from "../cell-mounts.ts";
import { type Answer, PROBE_RESOURCES, readAnswer, triedSyscalls } from "../probe/attack-answer.ts";
import { ATTACK_SCRIPT } from "../probe/attack-script.ts";
import { openBait } from "../probe/bait.ts";
import { CHECK_NAMES, toCheck } from "../probe/checks.ts";
import type { CellSpec, ProbeCheck, ProbeReport, Resources } from "../runtime.ts";
import type { MachineHost } from "./machine-host.ts";
import { insideEnvironment, nodeInside, PYTHON } from "./machine-plan.ts";
import { startMachine } from "./start-machine.ts";

const WORKSPACE = "/workspace";
/** Numbers of the server's own process below this may be those of processes inside. */
const DISTINCT_PID = 1000;
/** A machine needs some for its kernel. */
const RESOURCES: Resources = { ...PROBE_RESOURCES, cpus: 1, memoryBytes: 256 * 1024 * 1024 };

/** The common attacks, and one of its own: a machine has no more processors than it was given. */
const SCRIPT = `
import contextlib, io, json, os, sys
said = io.StringIO()
with contextlib.redirect_stdout(said):
    exec(sys.argv[2], {"__name__": "attack"})
found = json.loads(said.getvalue())
processors = os.sysconf("SC_NPROCESSORS_CONF")
found["cpu-limit"] = [processors > ${RESOURCES.cpus}, f"the machine has {processors} processor"]
print(json.dumps(found), flush=True)
`;

/** Boots a real machine and tries to break out of it. What was not tried, or gave no answer, does not hold. */
export async function probeMachine(host: MachineHost, signal: AbortSignal): Promise<ProbeReport> {
  const report = (checks: readonly ProbeCheck[]): ProbeReport => ({ runtime: "microsandbox", checks });
  try {
    const answer = await attackFromInside(host, signal);
    const untried: Answer[string] = [true, "the attack gave no answer"];
    return report([
      { name: "start", holds: true, severity: "isolation", detail: "A microVM starts." },
      ...CHECK_NAMES.map((name) => toCheck(name, answer[name] ?? untried)),
    ]);
  } catch (error) {
    signal.throwIfAborted();
    const { kind, message, hint, retryable } = toOwlError(error);
    // An image that is not there yet says nothing about the isolation.
    if (kind === "sandbox_unavailable" && retryable) throw error;
    return report([{ name: "start", holds: false, severity: "isolation", detail: message, fix: hint }]);
  }
}

async function attackFromInside(host: MachineHost, signal: AbortSignal): Promise<Answer> {
  const id = `probe-${randomBytes(8).toString("hex")}`;
  const folder = join(host.stateFolder, id);
  const common = { id, folder, template: "", resources: RESOURCES, workspacePath: WORKSPACE };
  const spec: CellSpec = { ...common, volumes: [], env: {} };
  const bait = await openBait(id);
  try {
    const given = JSON.stringify(attackArguments(host, spec, bait.listeners));
    const command = [PYTHON, "-I", "-S", "-c", SCRIPT, given, ATTACK_SCRIPT];
    const cell = await startMachine(host, { spec, command, signal });
    const stop = (): void => cell.end("stopped");
    signal.addEventListener("abort", stop, { once: true });
    try {
      return await readAnswer(cell);
    } finally {
      signal.removeEventListener("abort", stop);
      await cell.stop();
    }
  } finally {
    bait.close();
    await rm(folder, { recursive: true, force: true });
    await host.records.removeCellsOf(folder);
  }
}

function attackArguments(host: MachineHost, spec: CellSpec, listeners: unknown): unknown {
  const variables = [...Object.keys(insideEnvironment(host, spec)), "PWD", "LC_CTYPE", "OLDPWD", "SHLVL", "_"];
  const hasPid = process.pid > DISTINCT_PID;
  return {
    canaries: [
      ...["", "/host", "/proc/1/root"].map((prefix) => `${prefix}${join(host.stateFolder, "id")}`),
      "/etc/shadow",
      "/dev/vda",
      "/dev/mem",
      "/.msb/scripts",
      ...(hasPid ? [`/proc/${process.pid}/environ`] : []),
    ],
    serverPid: hasPid ? process.pid : 2 ** 22 - 1,
    needed: [nodeInside(host), `${GUEST_FOLDER}/guest.mjs`],
    listeners,
    abstractSocket: spec.id,
    syscalls: triedSyscalls(process.arch === "arm64" ? "arm64" : "x64"),
    variables,
    initVariables: variables,
    processes: ["python3"],
    workspace: WORKSPACE,
    ...RESOURCES,
  };
}
