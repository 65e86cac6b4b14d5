import type { Sandbox } from "./sandbox.ts";
import type { SandboxCaller, SandboxWish } from "./sandbox-wish.ts";

/** Which sandbox a call without an id means: one for each MCP session, and one more for each template and flavor asked for. */
export class DefaultSandboxes {
  readonly #byKey = new Map<string, Sandbox>();

  find({ principal, sessionId }: SandboxCaller, { template, flavor }: SandboxWish): Sandbox | undefined {
    return sessionId === undefined ? undefined : this.#byKey.get(key([principal.id, sessionId, template, flavor]));
  }

  /** The newest one is the session's default. */
  set({ principal, sessionId }: SandboxCaller, sandbox: Sandbox): void {
    if (sessionId === undefined) return;
    const { template, flavor } = sandbox.plan;
    this.#byKey.set(key([principal.id, sessionId, undefined, undefined]), sandbox);
    this.#byKey.set(key([principal.id, sessionId, template, flavor]), sandbox);
  }

  remove(sandbox: Sandbox): void {
    for (const [each, found] of this.#byKey) if (found === sandbox) this.#byKey.delete(each);
  }
}

function key(parts: readonly (string | undefined)[]): string {
  return JSON.stringify(parts);
}
