import type { CallObserver, FinishedCall } from "../call/governed-work.ts";

interface Remembered {
  readonly traceId: string;
  readonly time: number;
  readonly policyMs: number;
  readonly runMs: number;
  readonly ledgerMs: number;
}

export interface Stage {
  readonly name: string;
  readonly durationMs: number;
}

const MAX_REMEMBERED = 2000;

/** The duration of each stage of recent calls. The ledger stores only their total duration. */
export class RecentStages implements CallObserver {
  readonly #calls: Remembered[] = [];
  #next = 0;

  finished({ entry: { traceId, time }, stages: { policyMs, runMs }, ledgerMs }: FinishedCall): void {
    this.#calls[this.#next] = { traceId, time, policyMs, runMs, ledgerMs };
    this.#next = (this.#next + 1) % MAX_REMEMBERED;
  }

  of(traceId: string, time: number): readonly Stage[] | undefined {
    const call = this.#calls.find((each) => each.traceId === traceId && each.time === time);
    if (call === undefined) return undefined;
    return [
      { name: "policy", durationMs: rounded(call.policyMs) },
      { name: "run", durationMs: rounded(call.runMs) },
      { name: "ledger", durationMs: rounded(call.ledgerMs) },
    ];
  }
}

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
