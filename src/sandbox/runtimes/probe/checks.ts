import type { ProbeCheck, ProbeReport, Runtime } from "../runtime.ts";
import { toOwlError } from "../../../errors/owl-error.ts";
import type { Answer } from "./attack.ts";

const REPORT =
  "This is a fault of the machine's configuration or of OwlClaw: do not run untrusted code here; report it.";
const ACCEPT =
  "or accept weaker limits with --set sandbox.limits=best-effort (sandbox.limits: best-effort in the file).";
const CGROUP: Cause = {
  problem: "no cgroup for this user, so memory and CPU time of a sandbox cannot be limited",
  fix: `Start the server as root. Or with your systemd, which limits memory and CPU: \`systemd-run --user --scope -p Delegate=yes owlclaw mcp-server start …\`; ${ACCEPT}`,
};
const DISK: Cause = {
  problem: "no file system limits the workspace of a sandbox: a program can fill the disk before it is noticed",
  fix: `Start the server as root where loop devices can be used, with coreutils and e2fsprogs; ${ACCEPT}`,
};

/** What is wrong when an attack succeeds, and the repair. */
export type Cause = Pick<CheckFacts, "problem" | "fix">;

interface CheckFacts {
  readonly severity: ProbeCheck["severity"];
  /** The property, as a sentence. */
  readonly promise: string;
  /** The problem when the attack succeeds. */
  readonly problem: string;
  readonly fix: string;
}

/** One entry for each attack of the script, by the same name. */
const CHECKS = {
  guest: {
    severity: "isolation",
    promise: "Node and the guest can be read inside.",
    problem: "sandboxes cannot read the folders of Node or of OwlClaw",
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
  "memory-limit": limit("Memory of the whole sandbox is limited.", CGROUP),
  "process-limit": limit("The number of processes is limited.", CGROUP),
  "cpu-limit": limit("CPU time is limited.", CGROUP),
  "workspace-limit": limit("The workspace is limited in size.", DISK),
  "tmp-limit": limit("/tmp is limited in size.", DISK),
} as const satisfies Record<string, CheckFacts>;

export type CheckName = keyof typeof CHECKS;

export const CHECK_NAMES: readonly CheckName[] = Object.keys(CHECKS).filter(isCheckName);

function toCheck(name: CheckName, attack: readonly [succeeded: boolean, detail: string], cause?: Cause): ProbeCheck {
  const facts: CheckFacts = { ...CHECKS[name], ...cause };
  const [succeeded, detail] = attack;
  const check = { name, holds: !succeeded, severity: facts.severity, detail: `${facts.promise} Tried: ${detail}.` };
  return succeeded ? { ...check, problem: facts.problem, fix: facts.fix } : check;
}

function isCheckName(name: string): name is CheckName {
  return name in CHECKS;
}

function isolation(promise: string): CheckFacts {
  return { severity: "isolation", promise, problem: `this does not hold: ${promise.replace(/\.$/, "")}`, fix: REPORT };
}

function limit(promise: string, cause: Cause): CheckFacts {
  return { severity: "limit", promise, ...cause };
}

interface Attacked {
  readonly runtime: Runtime["name"];
  /** The detail of the check `start`. */
  readonly started: string;
  readonly answer: Answer;
  /** Problems and fixes that are specific to the runtime. */
  readonly causes?: Partial<Record<CheckName, Cause>>;
}

/** A property without an answer counts as broken. */
export function attackReport({ runtime, started, answer, causes = {} }: Attacked): ProbeReport {
  const untried: Answer[string] = [true, "the attack gave no answer"];
  return {
    runtime,
    checks: [
      { name: "start", holds: true, severity: "isolation", detail: started },
      ...CHECK_NAMES.map((name) => toCheck(name, answer[name] ?? untried, causes[name])),
    ],
  };
}

/** Why nothing started. A retryable failure, such as a missing image, is thrown: it says nothing about the isolation. */
export function failedStart(runtime: Runtime["name"], error: unknown): ProbeReport {
  const { kind, message, hint, retryable } = toOwlError(error);
  if (kind === "sandbox_unavailable" && retryable) throw error;
  return { runtime, checks: [{ name: "start", holds: false, severity: "isolation", detail: message, fix: hint }] };
}

/** Whether the signal aborted because of a time-out. */
export function isTimeout({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason instanceof Error && reason.name === "TimeoutError";
}
