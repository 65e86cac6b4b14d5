import type { GovernanceParts } from "./governed-call.ts";
import type { Call } from "./call.ts";

const ONCE_MS = 60_000;
const MAX_KEPT = 10_000;

/**
 * Records that somebody asked for a list. What a list shows depends on who asks and on the policy, never on how often:
 * the same one is recorded once a minute, so that nobody can fill the ledger by asking.
 */
export class ListRecords {
  readonly #parts: GovernanceParts;
  readonly #last = new Map<string, number>();

  constructor(parts: GovernanceParts) {
    this.#parts = parts;
  }

  async record(name: string, { caller, traceId }: Call, count: number): Promise<void> {
    const { governor, ledger } = this.#parts;
    const { principal, label, transport } = caller;
    const key = JSON.stringify([principal.id, label, transport, name, governor.revision]);
    const startMs = performance.now();
    if (startMs - (this.#last.get(key) ?? Number.NEGATIVE_INFINITY) < ONCE_MS) return;
    if (this.#last.size >= MAX_KEPT) this.#last.clear();
    this.#last.set(key, startMs);
    try {
      await ledger.append({
        time: Date.now(),
        principal: principal.id,
        label,
        transport,
        kind: "list",
        name,
        calledAs: name,
        args: {},
        result: { count },
        outcome: "ok",
        errorKind: undefined,
        decision: "allow",
        rule: "default",
        policyRevision: governor.revision,
        durationMs: 0,
        costMicros: 0,
        traceId,
        sandbox: undefined,
        flags: [],
      });
    } catch (error) {
      this.#last.delete(key);
      if (!governor.failOpen) throw error;
    }
  }
}
