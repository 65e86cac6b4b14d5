import { basename, join } from "node:path";
import { OwlError } from "../../../errors/owl-error.ts";
import { GUEST_FOLDER } from "../instance-mounts.ts";
import {
  type Answer,
  type FilledDisks,
  PROBE_RESOURCES,
  readAnswer,
  triedSyscalls,
  openUnreachableServices,
  serverProcess,
  type ProbeOptions,
  withProbe,
} from "../probe/attack.ts";
import { ATTACK_SCRIPT } from "../probe/attack-script.ts";
import { type Cause, type CheckName, attackReport, failedStart, isTimeout } from "../probe/checks.ts";
import type { ProbeReport, Resources } from "../runtime.ts";
import { insideEnvironment } from "./container-request.ts";
import type { DockerHost } from "./docker-host.ts";
import type { TestStart } from "../start-problems.ts";
import type { DockerInstance } from "./docker-instance.ts";
import { discardVolume } from "./reap.ts";
import { startContainer } from "./start-container.ts";

const TIMEOUT_MS = 55_000;

/** Volumes of engines are folders: between two measurements a program can write without a limit. */
const ONLY_WATCHED: Answer[string] = [
  true,
  "the workspace has no file system of its own; its size is measured every two seconds",
];

/** Not the workspace: nothing would limit that. */
const DISKS: FilledDisks = { "tmp-limit": "/tmp" };

const CPU_SCRIPT = `
import glob, json, re, time
end = time.monotonic() + 15
slowed = 0
while not slowed and time.monotonic() < end:
    for path in glob.glob("/sys/fs/cgroup/cpu.stat") + glob.glob("/sys/fs/cgroup/cpu*/cpu.stat"):
        slowed += int(re.search("nr_throttled (\\d+)", open(path).read() + "\\nnr_throttled 0")[1])
print(json.dumps({"cpu-limit": [False, "slowed down by the kernel"] if slowed else [True, "an endless loop was not slowed down"]}))
`;

const ENGINE_LIMITS: Cause = {
  problem: "the container engine does not limit memory, CPU time or processes",
  fix: "Run the engine as root, or rootless with cgroup version 2 and delegation; or accept weaker limits with --set sandbox.limits=best-effort.",
};
const CAUSES: Partial<Record<CheckName, Cause>> = {
  "memory-limit": ENGINE_LIMITS,
  "cpu-limit": ENGINE_LIMITS,
  "process-limit": ENGINE_LIMITS,
  "workspace-limit": {
    problem:
      "no file system limits the workspace of a sandbox: a program can fill the engine's disk before it is noticed",
    fix: "Use bubblewrap as root or microVMs, or accept weaker limits with --set sandbox.limits=best-effort.",
  },
};

/** Retryable: the machine may be busy, or another server may have died while it filled the volumes. */
function stuck(): OwlError {
  const reason = "containers do not start, or do not end, in time";
  return new OwlError("sandbox_unavailable", `docker cannot run sandboxes here: ${reason}`, {
    retryable: true,
    hint: "Try `docker run --rm --network none IMAGE true` with the runtime that sandbox.docker.runtime names; docs/runtimes.md has the limits of gVisor.",
  });
}

/** Starts real containers and tries to break out of them. */
export async function probeDocker(host: DockerHost, signal: AbortSignal): Promise<ProbeReport> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  try {
    const answer = await attackAll(host, limited);
    return attackReport({ runtime: "docker", started: "A container starts.", answer, causes: CAUSES });
  } catch (error) {
    if (isTimeout(limited)) throw stuck();
    signal.throwIfAborted();
    return failedStart("docker", error);
  }
}

/** Waits for all of them also when one fails: each cleans up after itself. */
async function attackAll(host: DockerHost, signal: AbortSignal): Promise<Answer> {
  const inside = attackFromInside(host, signal);
  const cpu = attackCpuLimit(host, signal);
  await Promise.allSettled([inside, cpu]);
  return { ...(await inside), "cpu-limit": await cpu, "workspace-limit": ONLY_WATCHED };
}

async function attackFromInside(host: DockerHost, signal: AbortSignal): Promise<Answer> {
  return await withProbe(probeOf(host, PROBE_RESOURCES, signal), async (probe) => {
    const services = await openUnreachableServices(probe.spec.id);
    const image = await host.images.get(host.imageOf(""));
    const variables = [...Object.keys(insideEnvironment(host, { ...probe, image })), ...image.variables];
    const server = serverProcess();
    try {
      const given = {
        canaries: [
          ...["", "/host", "/proc/1/root"].map((prefix) => `${prefix}${join(host.stateFolder, "id")}`),
          "/etc/shadow",
          "/var/run/docker.sock",
          ...server.files,
        ],
        serverPid: server.serverPid,
        needed: [image.node, `${GUEST_FOLDER}/guest.mjs`],
        listeners: services.listeners,
        abstractSocket: probe.spec.id,
        syscalls: triedSyscalls(host.facts.architecture),
        variables: [...variables, "HOSTNAME", "PWD", "LC_CTYPE", "OLDPWD", "SHLVL", "_", "container", "TERM"],
        initVariables: [...variables, "HOSTNAME", "container", "TERM"],
        processes: [basename(image.python)],
        disks: DISKS,
        ...PROBE_RESOURCES,
      };
      const command = [image.python, "-I", "-S", "-c", ATTACK_SCRIPT, JSON.stringify(given)];
      return await readAnswer(await probe.start(command));
    } finally {
      services.close();
    }
  });
}

/** Reads the kernel's counter inside, where every engine shows it. */
async function attackCpuLimit(host: DockerHost, signal: AbortSignal): Promise<Answer[string]> {
  const resources = { ...PROBE_RESOURCES, cpus: 0.1 };
  return await withProbe(probeOf(host, resources, signal), async (probe) => {
    const { python } = await host.images.get(host.imageOf(""));
    const answer = await readAnswer(await probe.start([python, "-I", "-S", "-c", CPU_SCRIPT]));
    return answer["cpu-limit"] ?? [true, "the attack gave no answer"];
  });
}

/** Starts a container from a template's image and removes it. */
export async function tryContainer(host: DockerHost, { template, signal }: TestStart): Promise<void> {
  await withProbe({ ...probeOf(host, PROBE_RESOURCES, signal), template }, async (probe) => {
    await probe.start(["/bin/true"]);
  });
}

/** What every attack starts from. */
function probeOf(host: DockerHost, resources: Resources, signal: AbortSignal): ProbeOptions<DockerInstance> {
  return {
    stateFolder: host.stateFolder,
    resources,
    signal,
    start: async (request) => await startContainer(host, request),
    discard: async (folder) => await discardVolume(host, host.ownership.volumeName(folder)),
  };
}
