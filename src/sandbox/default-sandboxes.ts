import type { Sandbox } from "./sandbox.ts";
import type { SandboxCaller, SandboxRequest } from "./sandbox-request.ts";

const MAX_REMEMBERED = 10_000;

/** The sandbox of a call without an id: one for each MCP session, and one for each requested template and flavor. */
export class DefaultSandboxes {
  readonly #byKey = new Map<string, Sandbox>();
  /** Why the last sandbox of a key ended, until the caller has another. */
  readonly #whyEnded = new Map<string, string>();

  find(caller: SandboxCaller, request: SandboxRequest): Sandbox | undefined {
    const key = keyOf(caller, request);
    return key === undefined ? undefined : this.#byKey.get(key);
  }

  /** Why the caller's sandbox ended; `undefined` when there was none or its owner destroyed it. */
  whyEnded(caller: SandboxCaller, request: SandboxRequest): string | undefined {
    const key = keyOf(caller, request);
    return key === undefined ? undefined : this.#whyEnded.get(key);
  }

  /** The newest sandbox is the default of its session. */
  set(caller: SandboxCaller, sandbox: Sandbox): void {
    const { template, flavor } = sandbox.plan;
    for (const key of [keyOf(caller, {}), keyOf(caller, { template, flavor })]) {
      if (key === undefined) continue;
      this.#byKey.set(key, sandbox);
      this.#whyEnded.delete(key);
    }
  }

  remove(sandbox: Sandbox, why: string | undefined): void {
    for (const [key, found] of this.#byKey) {
      if (found !== sandbox) continue;
      this.#byKey.delete(key);
      if (why !== undefined) this.#remember(key, why);
    }
  }

  #remember(key: string, why: string): void {
    this.#whyEnded.set(key, why);
    const [oldest] = this.#whyEnded.keys();
    if (this.#whyEnded.size > MAX_REMEMBERED && oldest !== undefined) this.#whyEnded.delete(oldest);
  }
}

function keyOf({ principal, sessionId }: SandboxCaller, { template, flavor }: SandboxRequest): string | undefined {
  return sessionId === undefined ? undefined : JSON.stringify([principal.id, sessionId, template, flavor]);
}
