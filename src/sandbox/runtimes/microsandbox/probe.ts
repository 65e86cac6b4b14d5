import { join } from "node:path";
import { GUEST_FOLDER } from "../instance-mounts.ts";
import {
  type Answer,
  type FilledDisks,
  readAnswer,
  triedSyscalls,
  openUnreachableServices,
  serverProcess,
  PROBE_RESOURCES,
  PROBE_WORKSPACE,
  type ProbeOptions,
  withProbe,
} from "../probe/attack.ts";
import { ATTACK_SCRIPT } from "../probe/attack-script.ts";
import { attackReport, failedStart } from "../probe/checks.ts";
import type { InstanceSpec, ProbeReport, Resources } from "../runtime.ts";
import type { MachineHost } from "./machine-host.ts";
import { insideEnvironment, nodeInside, PYTHON } from "./machine-plan.ts";
import { rm } from "node:fs/promises";
import type { TestStart } from "../start-problems.ts";
import type { MachineInstance } from "./machine-instance.ts";
import { startMachine } from "./start-machine.ts";

/** More memory than in other runtimes: the kernel of the machine needs some. */
const MACHINE_PROBE_RESOURCES: Resources = { ...PROBE_RESOURCES, cpus: 1, memoryBytes: 256 * 1024 * 1024 };

/** The common attacks, and one for machines: they must not have more processors than configured. */
const SCRIPT = `
import contextlib, io, json, os, sys
said = io.StringIO()
with contextlib.redirect_stdout(said):
    exec(sys.argv[2], {"__name__": "attack"})
found = json.loads(said.getvalue())
processors = os.sysconf("SC_NPROCESSORS_CONF")
found["cpu-limit"] = [processors > ${MACHINE_PROBE_RESOURCES.cpus}, f"the machine has {processors} processor"]
print(json.dumps(found), flush=True)
`;

const DISKS: FilledDisks = { "workspace-limit": PROBE_WORKSPACE, "tmp-limit": "/tmp" };

/** Boots a real machine and tries to break out of it. */
export async function probeMachine(host: MachineHost, signal: AbortSignal): Promise<ProbeReport> {
  try {
    const answer = await attackFromInside(host, signal);
    return attackReport({ runtime: "microsandbox", started: "A microVM starts.", answer });
  } catch (error) {
    signal.throwIfAborted();
    return failedStart("microsandbox", error);
  }
}

async function attackFromInside(host: MachineHost, signal: AbortSignal): Promise<Answer> {
  return await withProbe(probeOf(host, "", signal), async ({ spec, start }) => {
    const services = await openUnreachableServices(spec.id);
    try {
      const given = JSON.stringify(attackArguments(host, spec, services.listeners));
      return await readAnswer(await start([PYTHON, "-I", "-S", "-c", SCRIPT, given, ATTACK_SCRIPT]));
    } finally {
      services.close();
    }
  });
}

function attackArguments(host: MachineHost, spec: InstanceSpec, listeners: unknown): unknown {
  const variables = [...Object.keys(insideEnvironment(host, spec)), "PWD", "LC_CTYPE", "OLDPWD", "SHLVL", "_"];
  const server = serverProcess();
  return {
    canaries: [
      ...["", "/host", "/proc/1/root"].map((prefix) => `${prefix}${join(host.stateFolder, "id")}`),
      "/etc/shadow",
      "/dev/vda",
      "/dev/mem",
      "/.msb/scripts",
      ...server.files,
    ],
    serverPid: server.serverPid,
    needed: [nodeInside(host), `${GUEST_FOLDER}/guest.mjs`],
    listeners,
    abstractSocket: spec.id,
    syscalls: triedSyscalls(process.arch === "arm64" ? "arm64" : "x64"),
    variables,
    initVariables: variables,
    processes: ["python3"],
    disks: DISKS,
    ...MACHINE_PROBE_RESOURCES,
  };
}

/** Starts a machine from a template's image and removes it. */
export async function tryMachine(host: MachineHost, { template, signal }: TestStart): Promise<void> {
  await withProbe(probeOf(host, template, signal), async (probe) => {
    await probe.start(["/bin/sh", "-c", ":"]);
  });
}

/** What every attack starts from. */
function probeOf(host: MachineHost, template: string, signal: AbortSignal): ProbeOptions<MachineInstance> {
  return {
    stateFolder: host.stateFolder,
    template,
    resources: MACHINE_PROBE_RESOURCES,
    signal,
    start: async (request) => await startMachine(host, request),
    discard: async (folder) => {
      await rm(folder, { recursive: true, force: true });
      await host.records.removeInstancesOf(folder);
    },
  };
}
