import type { InstancePlan } from "./instance-starter.ts";
import { OwlError } from "../errors/owl-error.ts";
import { serverIdOf } from "./sandbox-request.ts";

const REMEMBER_MS = 24 * 3_600_000;
const MAX_REMEMBERED = 10_000;

/** A sandbox that the server ended: its owner may start a new, empty one under the same id. */
export interface EndedSandbox {
  readonly id: string;
  readonly ownerId: string;
  readonly plan: InstancePlan;
  readonly labels: Readonly<Record<string, string>>;
  readonly idleMs: number;
  readonly maxAgeMs: number;
  readonly endedAtMs: number;
  readonly why: string;
}

/** Sandboxes that ended within a day, without those that were destroyed. */
export class EndedSandboxes {
  readonly #byId = new Map<string, EndedSandbox>();

  add(ended: EndedSandbox): void {
    this.#forgetOld(ended.endedAtMs);
    this.#byId.set(ended.id, ended);
  }

  find(id: string, ownerId: string, nowMs: number): EndedSandbox | undefined {
    const found = this.#byId.get(id);
    return found?.ownerId === ownerId && nowMs - found.endedAtMs < REMEMBER_MS ? found : undefined;
  }

  take(id: string, ownerId: string, nowMs: number): EndedSandbox | undefined {
    const found = this.find(id, ownerId, nowMs);
    if (found !== undefined) this.#byId.delete(id);
    return found;
  }

  /** Entries are in the order in which the sandboxes ended. */
  #forgetOld(nowMs: number): void {
    for (const [id, { endedAtMs }] of this.#byId) {
      if (nowMs - endedAtMs < REMEMBER_MS && this.#byId.size < MAX_REMEMBERED) return;
      this.#byId.delete(id);
    }
  }
}

/** The note in the first result of a new sandbox that replaces one that the server ended. */
export function replacedNote(
  why: string | undefined,
  underWhichId: string,
  { keepWorkspaces }: { readonly keepWorkspaces: boolean },
): string | undefined {
  if (why === undefined) return undefined;
  const files = keepWorkspaces
    ? "its files are kept on the server's disk and are not in this one, variables and processes are gone"
    : "files, variables and processes are gone";
  return `the sandbox ended before (${why}); this is a new, empty one ${underWhichId}: ${files}`;
}

/**
 * The error for an id without a sandbox. It is the same for an id that never existed, a destroyed sandbox and a sandbox of another
 * principal, so that it reveals nothing. Only its owner is told why a sandbox ended.
 */
export function missingSandbox(id: string, serverId: string | undefined, whyEnded?: string): OwlError {
  const owner = serverIdOf(id);
  if (serverId !== undefined && owner !== undefined && owner !== serverId)
    return new OwlError("session_elsewhere", "the sandbox with this session_id is on another server");
  if (whyEnded !== undefined)
    return new OwlError("session_not_found", `the sandbox with this session_id has ended (${whyEnded})`, {
      hint: "call a tool with this session_id for a new, empty sandbox under the same id",
    });
  return new OwlError("session_not_found", "there is no sandbox with this session_id", {
    hint: "call sandbox_list for yours, sandbox_create for a new one, or leave session_id out",
  });
}
