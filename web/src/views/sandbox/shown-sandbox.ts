import type { Activity } from "../../../../src/operator/activity-log.ts";
import type { SandboxDetail, SandboxNow } from "../../../../src/operator/contract.ts";

/** The data of a sandbox on the page. After its end the data stays readable, and nothing more is requested. */
export interface ShownSandbox extends SandboxDetail {
  readonly isAlive: boolean;
}

/**
 * Live values replace those of the detail request, which may be outdated: an old answer would still contain
 * `takenOverBy`.
 */
export function shownSandbox(detail: SandboxDetail, live: SandboxNow | undefined): ShownSandbox {
  const { takenOverBy: _by, cpuPercent: _cpu, memoryBytes: _memory, ...lasting } = detail;
  return { ...lasting, ...live, isAlive: live !== undefined };
}

/** The path of a request to the sandbox. Undefined when it has ended. */
export function pathOf(sandbox: ShownSandbox, name: string): string | undefined {
  return sandbox.isAlive ? `sandboxes/${encodeURIComponent(sandbox.id)}/${name}` : undefined;
}

/** Whether this is the last entry of a sandbox. Only the server writes it; the guest cannot. */
export function isLast({ kind, text }: Activity): boolean {
  return kind === "state" && text?.startsWith("ended: ") === true;
}
