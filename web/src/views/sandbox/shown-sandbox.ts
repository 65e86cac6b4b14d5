import type { Activity } from "../../../../src/operator/activity-log.ts";
import type { SandboxDetail, SandboxNow } from "../../../../src/operator/contract.ts";

/** What the page knows of a sandbox. One that has ended can still be read, and nothing is asked of it. */
export interface ShownSandbox extends SandboxDetail {
  readonly isAlive: boolean;
}

/** What changes comes from what is live: an old answer would keep saying who had taken it over. */
export function shownSandbox(detail: SandboxDetail, live: SandboxNow | undefined): ShownSandbox {
  const { takenOverBy: _by, cpuPercent: _cpu, memoryBytes: _memory, ...lasting } = detail;
  return { ...lasting, ...live, isAlive: live !== undefined };
}

/** Below it is everything that a sandbox answers; none when it has ended. */
export function pathOf(sandbox: ShownSandbox, name: string): string | undefined {
  return sandbox.isAlive ? `sandboxes/${encodeURIComponent(sandbox.id)}/${name}` : undefined;
}

/** The server's own last word on a sandbox; nothing inside can say it. */
export function isLast({ kind, text }: Activity): boolean {
  return kind === "state" && text?.startsWith("ended: ") === true;
}
