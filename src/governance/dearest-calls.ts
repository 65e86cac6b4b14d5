import type { Admissions } from "./store/admissions.ts";
import type { Admission, AdmitRequest } from "./store/governance-store.ts";
import type { Terms } from "./policy/terms.ts";

/** Several budgets may stand in the way, one behind the other. */
const MAX_TRIES = 4;
/** Names come from definitions and patterns, not from callers: this many are only there where something is wrong. */
const MAX_REMEMBERED = 10_000;

/**
 * Calls whose cost nobody can know before: what their dearest has cost so far is set aside. Where less than that is left
 * of a budget, one of them takes all of it and runs alone, so that many at a time cannot pass the line together.
 */
export class DearestCalls {
  readonly #micros = new Map<string, number>();

  /** What to set aside for the next one. */
  reserveOf({ openEndedAs, reserveMicros }: Terms): number {
    if (openEndedAs === undefined) return reserveMicros;
    return Math.max(reserveMicros, this.#micros.get(openEndedAs) ?? 0);
  }

  learn({ openEndedAs }: Terms, costMicros: number): void {
    if (openEndedAs === undefined || costMicros <= (this.#micros.get(openEndedAs) ?? 0)) return;
    if (this.#micros.size >= MAX_REMEMBERED) this.#micros.clear();
    this.#micros.set(openEndedAs, costMicros);
  }

  /** Takes what it asks for, or all that is left. Less than is known to be needed is a refusal. */
  async admit(
    calls: Pick<Admissions, "admit">,
    { reserveMicros, ...request }: AdmitRequest,
    leastMicros: number,
  ): Promise<Admission> {
    let wantedMicros = reserveMicros;
    for (let tries = 1; ; tries += 1) {
      const admission = await calls.admit({ ...request, reserveMicros: wantedMicros });
      if (admission.ok || admission.refusal.name !== "monthlyBudget") return admission;
      const { limit, used } = admission.refusal;
      if (limit - used < leastMicros || tries >= MAX_TRIES) return admission;
      wantedMicros = limit - used;
    }
  }
}
