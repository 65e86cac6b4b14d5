import type { ProbeCheck } from "../../runtime.ts";

interface CheckFacts {
  readonly severity: ProbeCheck["severity"];
  /** What holds when the attack fails. */
  readonly promise: string;
  readonly fix: string;
}

const REPORT =
  "This is a fault of the machine's configuration or of OwlClaw: do not run untrusted code here; report it.";
const CGROUP_FIX =
  "Start the server as root, or with the user's systemd: `systemd-run --user --scope -p Delegate=yes owlclaw mcp-server start …`; or accept weaker limits with sandbox.limits: best-effort.";
const DISK_FIX = "Install coreutils and e2fsprogs, or accept weaker limits with sandbox.limits: best-effort.";

/** One entry for each attack of the script, under the same name. */
export const CHECKS = {
  guest: {
    severity: "isolation",
    promise: "Node and the guest can be read inside.",
    fix: "Let others read the installation: `chmod -R a+rX` on the folders of Node and of OwlClaw.",
  },
  "server-files": isolation("Files of the server and its user cannot be read."),
  "host-processes": isolation("Processes of the host cannot be seen or signalled."),
  "host-network": isolation("Services on the host's loopback cannot be reached."),
  "host-sockets": isolation("Unix sockets of the host cannot be reached."),
  "read-only-system": isolation("The system inside cannot be changed."),
  privileges: isolation("There are no capabilities, and none can be gained."),
  "nested-namespaces": isolation("No further namespace can be made."),
  mounts: isolation("Nothing can be mounted, remounted or unmounted."),
  "system-calls": isolation("Dangerous system calls are refused."),
  "server-environment": isolation("Nothing of the server's environment is visible."),
  "inherited-descriptors": isolation("No descriptor of the server is open inside."),
  "memory-limit": limit("Memory of the whole sandbox is limited.", CGROUP_FIX),
  "process-limit": limit("The number of processes is limited.", CGROUP_FIX),
  "cpu-limit": limit("CPU time is limited.", CGROUP_FIX),
  "workspace-limit": limit("The workspace is limited in size.", DISK_FIX),
  "tmp-limit": limit("/tmp is limited in size.", DISK_FIX),
} as const satisfies Record<string, CheckFacts>;

export type CheckName = keyof typeof CHECKS;

export const CHECK_NAMES: readonly CheckName[] = Object.keys(CHECKS).filter(isCheckName);

export function toCheck(name: CheckName, attack: readonly [succeeded: boolean, detail: string]): ProbeCheck {
  const facts: CheckFacts = CHECKS[name];
  const [succeeded, detail] = attack;
  const check = { name, holds: !succeeded, severity: facts.severity, detail: `${facts.promise} Tried: ${detail}.` };
  return succeeded ? { ...check, fix: facts.fix } : check;
}

function isCheckName(name: string): name is CheckName {
  return name in CHECKS;
}

function isolation(promise: string): CheckFacts {
  return { severity: "isolation", promise, fix: REPORT };
}

function limit(promise: string, fix: string): CheckFacts {
  return { severity: "limit", promise, fix };
}
