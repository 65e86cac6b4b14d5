import { setTimeout as delay } from "node:timers/promises";
import { ANONYMOUS } from "../auth/principal.ts";

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;
/** After this time without a violation, an owner has no pause. */
const FORGET_MS = 120_000;
const MAX_OWNERS = 10_000;

interface Violations {
  readonly count: number;
  readonly lastAtMs: number;
}

/**
 * Delays the next sandbox of an owner whose guest sent malformed frames. Only user code that controls the guest sends those. Each start
 * costs the server about as much as the flood before it, so the pause doubles with every violation.
 */
export class StartPauses {
  readonly #byOwner = new Map<string, Violations>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  addViolation(owner: string): void {
    const count = (this.#find(owner)?.count ?? 0) + 1;
    // Deleted first, so that the oldest entry is the first of the map.
    this.#byOwner.delete(owner);
    this.#byOwner.set(owner, { count, lastAtMs: this.#nowMs() });
    for (const [oldest] of this.#byOwner) {
      if (this.#byOwner.size <= MAX_OWNERS) return;
      this.#byOwner.delete(oldest);
    }
  }

  /** How many violations the owner's guests have committed, until they are forgotten. */
  violations(owner: string): number {
    return this.#find(owner)?.count ?? 0;
  }

  /** How long the owner's next start has to wait; 0 for owners without a violation. */
  leftMs(owner: string): number {
    const violations = this.#find(owner);
    if (violations === undefined) return 0;
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (violations.count - 1));
    return Math.max(0, violations.lastAtMs + pauseMs - this.#nowMs());
  }

  /** Rejects with the signal's reason when it aborts first. */
  async wait(owner: string, signal: AbortSignal): Promise<void> {
    for (let leftMs = this.leftMs(owner); leftMs > 0; leftMs = this.leftMs(owner)) {
      await delay(leftMs, undefined, { signal });
    }
  }

  #find(owner: string): Violations | undefined {
    const violations = this.#byOwner.get(owner);
    if (violations === undefined || this.#nowMs() - violations.lastAtMs < FORGET_MS) return violations;
    this.#byOwner.delete(owner);
    return undefined;
  }
}

/** All anonymous clients are one principal: a pause for one MCP session must not delay the others. */
export function pausedOwner(facts: {
  readonly id: string;
  readonly ownerId: string;
  readonly mcpSessionId: string | undefined;
}): string {
  return facts.ownerId === ANONYMOUS.id ? `${ANONYMOUS.id} ${facts.mcpSessionId ?? facts.id}` : facts.ownerId;
}
