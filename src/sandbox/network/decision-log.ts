import type { Logger } from "../../telemetry/logger.ts";

// A program in a loop must not fill the log: each refused target is logged once, up to this number of targets.
const MAX_TARGETS_LOGGED = 64;

/** One connection attempt, as operators and the ledger see it. It contains no path, header or body. */
export interface EgressDecision {
  /** Counts up from 1 for each sandbox. An allowed attempt is reported twice with one id: when it opens and when it ends. */
  readonly id: number;
  readonly sandboxId: string;
  /** ISO 8601. */
  readonly time: string;
  /** Empty when the request was refused before its target was parsed. */
  readonly host: string;
  readonly port: number;
  readonly allowed: boolean;
  /** The connection is open: the byte counts are not final. */
  readonly isOpen: boolean;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  readonly address?: string;
  readonly rule?: string;
  /** Why it was refused or failed. */
  readonly reason?: string;
}

interface DecisionLogOptions {
  readonly sandboxId: string;
  readonly maxDecisions: number;
  readonly clock: () => number;
  readonly logger: Logger;
  readonly onDecision: ((decision: EgressDecision) => void) | undefined;
}

/** The last decisions of one sandbox. */
export class DecisionLog {
  readonly #options: DecisionLogOptions;
  readonly #logged = new Set<string>();
  readonly #entries = new Map<number, EgressDecision>();
  #lastId = 0;

  constructor(options: DecisionLogOptions) {
    this.#options = options;
  }

  /** Oldest first. */
  list(): readonly EgressDecision[] {
    return [...this.#entries.values()];
  }

  add(facts: Omit<EgressDecision, "id" | "time" | "sandboxId">): EgressDecision {
    const { sandboxId, clock } = this.#options;
    this.#lastId += 1;
    return this.#report({ ...facts, id: this.#lastId, sandboxId, time: new Date(clock()).toISOString() });
  }

  update(decision: EgressDecision, facts: Partial<Omit<EgressDecision, "id">>): EgressDecision {
    return this.#report({ ...decision, ...facts });
  }

  #report(decision: EgressDecision): EgressDecision {
    this.#remember(decision);
    if (!decision.allowed) this.#log(decision);
    try {
      this.#options.onDecision?.(decision);
    } catch (cause) {
      this.#options.logger.error("the listener for egress decisions failed", { cause });
    }
    return decision;
  }

  #remember(decision: EgressDecision): void {
    const isForgotten = decision.id <= this.#lastId - this.#options.maxDecisions;
    if (isForgotten) return;
    this.#entries.set(decision.id, decision);
    this.#entries.delete(this.#lastId - this.#options.maxDecisions);
  }

  #log(decision: EgressDecision): void {
    const { host, port, reason, address } = decision;
    const target = `${host}:${port}`;
    if (this.#logged.has(target) || this.#logged.size >= MAX_TARGETS_LOGGED) return;
    this.#logged.add(target);
    this.#options.logger.info("egress refused", { host, port, reason, ...(address === undefined ? {} : { address }) });
  }
}
