import { mkdir, writeFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { OwlError } from "../../../errors/owl-error.ts";
import type { InstanceSpec, ProbeCheck, ProbeReport, Resources } from "../runtime.ts";
import { insideEnvironment } from "./bwrap-arguments.ts";
import { GUEST_FOLDER } from "../instance-mounts.ts";
import type { BubblewrapInstance } from "./bubblewrap-instance.ts";
import type { BubblewrapHost } from "./bubblewrap-host.ts";
import { findTool } from "../run-tool.ts";
import { discardInstance, startInstance } from "./start-instance.ts";
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
import { attackReport, isTimeout } from "../probe/checks.ts";
import { isThere } from "../host-files.ts";

// Long, for slow machines.
const TIMEOUT_MS = 50_000;
const CPU_TIMEOUT_MS = 15_000;
const CPU_POLL_MS = 10;
/** Small, so that a loop uses it up also on a busy machine. */
const CPU_SHARE = 0.05;
/** Between two measurements a program can write without a limit. */
const ONLY_WATCHED: Answer[string] = [
  true,
  "the workspace has no file system of its own; its size is measured every two seconds",
];

/** Starts real instances and tries to break out of them. */
export async function probeBubblewrap(host: BubblewrapHost, signal: AbortSignal): Promise<ProbeReport> {
  const report = (checks: readonly ProbeCheck[]): ProbeReport => ({ runtime: "bubblewrap", checks });
  if ((await findTool("bwrap")) === undefined) return report([missingBubblewrap()]);
  if (host.python === undefined) return report([missingPython()]);
  const limited = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  try {
    const answer = await attackAll(host, limited);
    return attackReport({ runtime: "bubblewrap", started: "A sandbox starts.", answer });
  } catch (error) {
    if (isTimeout(limited)) throw late();
    signal.throwIfAborted();
    return report([await explainStartFailure(error instanceof Error ? error.message : String(error))]);
  }
}

/** Retryable: the machine may be busy. */
function late(): OwlError {
  return new OwlError("sandbox_unavailable", "bubblewrap cannot run sandboxes here: they do not answer in time", {
    retryable: true,
    hint: "The server tries again. Find out what keeps the machine or its disk busy.",
  });
}

/** Waits for all of them also when one fails: each cleans up after itself. */
async function attackAll(host: BubblewrapHost, signal: AbortSignal): Promise<Answer> {
  const inside = attackFromInside(host, signal);
  const cpu = attackCpuLimit(host, signal);
  await Promise.allSettled([inside, cpu]);
  const answer: Answer = { ...(await inside), "cpu-limit": await cpu };
  return host.privileges?.images === undefined ? { ...answer, "workspace-limit": ONLY_WATCHED } : answer;
}

async function attackFromInside(host: BubblewrapHost, signal: AbortSignal): Promise<Answer> {
  return await withProbe(probeOf(host, PROBE_RESOURCES, signal), async (probe) => {
    const canary = join(probe.spec.folder, "canary");
    await mkdir(probe.spec.folder, { recursive: true, mode: 0o755 });
    await writeFile(canary, "secret", { mode: 0o644 });
    const services = await openUnreachableServices(probe.spec.id);
    const server = serverProcess();
    try {
      const given = {
        canaries: [
          canary,
          `/host${canary}`,
          `/proc/1/root${canary}`,
          "/etc/shadow",
          "/host/etc/shadow",
          ...server.files,
        ],
        serverPid: server.serverPid,
        needed: [host.node.executable, `${GUEST_FOLDER}/guest.mjs`],
        listeners: services.listeners,
        abstractSocket: probe.spec.id,
        syscalls: triedSyscalls(architecture()),
        variables: [...Object.keys(insideEnvironment(host, probe.spec)), "PWD", "LC_CTYPE"],
        initVariables: [],
        processes: ["bwrap", "prlimit"],
        disks: filledDisks(host, probe.spec),
        ...PROBE_RESOURCES,
      };
      const python = host.python?.executable ?? "";
      const instance = await probe.start([python, "-I", "-S", "-c", ATTACK_SCRIPT, JSON.stringify(given)]);
      return await readAnswer(instance);
    } finally {
      services.close();
    }
  });
}

/** A workspace without its own disk is not filled: nothing would limit that. */
function filledDisks({ privileges }: BubblewrapHost, { workspacePath }: InstanceSpec): FilledDisks {
  const tmp = { "tmp-limit": "/tmp" };
  return privileges?.images === undefined ? tmp : { ...tmp, "workspace-limit": workspacePath };
}

/** In its own instance: a process that is throttled and out of memory at the same time takes seconds to exit. */
async function attackCpuLimit(host: BubblewrapHost, signal: AbortSignal): Promise<Answer[string]> {
  if (host.controlGroups === undefined) return [true, "there is no control group to limit it"];
  const resources = { ...PROBE_RESOURCES, cpus: CPU_SHARE };
  return await withProbe(probeOf(host, resources, signal), async (probe) => {
    const instance = await probe.start(["/bin/bash", "--norc", "-c", "while :; do :; done"]);
    for (let waitedMs = 0; waitedMs < CPU_TIMEOUT_MS; waitedMs += CPU_POLL_MS) {
      if (((await instance.group?.throttledPeriods()) ?? 0) > 0) return [false, "slowed down by the kernel"];
      await delay(CPU_POLL_MS);
    }
    return [true, "an endless loop was not slowed down"];
  });
}

/** What every attack starts from. */
function probeOf(host: BubblewrapHost, resources: Resources, signal: AbortSignal): ProbeOptions<BubblewrapInstance> {
  return {
    stateFolder: host.stateFolder,
    resources,
    signal,
    start: async (request) => await startInstance(host, request),
    discard: async (folder) => await discardInstance(host, folder),
  };
}

function architecture(): "x64" | "arm64" {
  return process.arch === "arm64" ? "arm64" : "x64";
}

function missingPython(): ProbeCheck {
  return {
    name: "start",
    holds: false,
    severity: "isolation",
    detail: "No python3 was found that works outside its version manager.",
    fix: "Run `sudo apt-get install -y python3`, or name an interpreter in the configuration.",
  };
}

/** Why no instance could be started, and how to fix it. */
async function explainStartFailure(message: string): Promise<ProbeCheck> {
  const { detail, fix } = await explain(message);
  return { name: "start", holds: false, severity: "isolation", detail, fix };
}

async function explain(message: string): Promise<{ detail: string; fix: string }> {
  if (message.includes("Unknown option")) {
    return {
      detail: `bubblewrap is too old. ${message}`,
      fix: "Install bubblewrap 0.8 or newer: `sudo apt-get install -y bubblewrap` on Debian 12, Ubuntu 24.04 or newer.",
    };
  }
  if ((await readSetting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")) === "1") {
    return {
      detail: `AppArmor forbids user namespaces to unprivileged programs (the default of Ubuntu 24.04). ${message}`,
      fix: "Allow them to bwrap alone: `sudo apt-get install -y apparmor-profiles && sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict`; or to all programs: `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`.",
    };
  }
  if ((await readSetting("/proc/sys/kernel/unprivileged_userns_clone")) === "0") {
    return {
      detail: `The kernel forbids user namespaces to ordinary users. ${message}`,
      fix: "Run `sudo sysctl -w kernel.unprivileged_userns_clone=1`, and put it in /etc/sysctl.d/ to keep it.",
    };
  }
  if ((await readSetting("/proc/sys/user/max_user_namespaces")) === "0") {
    return {
      detail: `The kernel allows no user namespaces. ${message}`,
      fix: "Run `sudo sysctl -w user.max_user_namespaces=10000`, and put it in /etc/sysctl.d/ to keep it.",
    };
  }
  if ((await isThere("/.dockerenv")) || (await isThere("/run/.containerenv"))) {
    return {
      detail: `The server runs in a container whose profile forbids namespaces. ${message}`,
      fix: "Start the container with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined` (and `--security-opt apparmor=unconfined` where AppArmor is in force).",
    };
  }
  return { detail: message, fix: "Run bwrap by hand to see more: `bwrap --unshare-all --ro-bind / / true`." };
}

function missingBubblewrap(): ProbeCheck {
  return {
    name: "start",
    holds: false,
    severity: "isolation",
    detail: "bubblewrap is not installed.",
    fix: "Run `sudo apt-get install -y bubblewrap` (Fedora: `sudo dnf install bubblewrap`, Alpine: `apk add bubblewrap`).",
  };
}

async function readSetting(file: string): Promise<string | undefined> {
  return await readFile(file, "utf8").then(
    (text) => text.trim(),
    () => undefined,
  );
}
