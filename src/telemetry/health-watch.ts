import type { Alerts } from "./alerts.ts";
import type { CheckReport, Health, HealthReport } from "./health.ts";
import type { Logger } from "./logger.ts";

/** Something that comes and goes is not well: it must be so for this many looks. */
const STEADY_LOOKS = 2;
/** What is down for long is told again, in case the first message was lost. */
const REMIND_MS = 3_600_000;

type Status = CheckReport["status"];

interface Trouble {
  told: Status;
  toldAtMs: number;
  steadyLooks: number;
}

export interface HealthWatchOptions {
  readonly health: Pick<Health, "report">;
  readonly alerts: Alerts;
  readonly logger: Logger;
  readonly everyMs: number;
}

/** Looks at the health again and again, and tells once when something breaks and once when it is well again. */
export class HealthWatch {
  readonly #options: HealthWatchOptions;
  readonly #troubles = new Map<string, Trouble>();
  readonly #timer: NodeJS.Timeout;
  #isLooking = false;

  constructor(options: HealthWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.look(), options.everyMs);
    this.#timer.unref();
  }

  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      this.#judge(await this.#options.health.report());
    } finally {
      this.#isLooking = false;
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #judge({ checks }: HealthReport): void {
    for (const [name, { status, message }] of Object.entries(checks)) {
      if (status === "down" || status === "degraded") this.#trouble(name, status, message);
      else if (status === "ok") this.#well(name, message);
    }
  }

  #trouble(name: string, status: Status, message: string): void {
    const known = this.#troubles.get(name);
    const nowMs = performance.now();
    if (known !== undefined) known.steadyLooks = 0;
    if (known?.told === status && nowMs - known.toldAtMs < REMIND_MS) return;
    this.#troubles.set(name, { told: status, toldAtMs: nowMs, steadyLooks: 0 });
    const { logger, alerts } = this.#options;
    const event = `${name}_${status}`;
    if (status === "down") logger.error("a dependency is down", { check: name, reason: message });
    else logger.warning("a dependency needs care", { check: name, reason: message });
    alerts.send({ event, severity: status === "down" ? "error" : "warning", message, facts: { check: name } });
  }

  #well(name: string, message: string): void {
    const known = this.#troubles.get(name);
    if (known === undefined) return;
    known.steadyLooks += 1;
    if (known.steadyLooks < STEADY_LOOKS) return;
    this.#troubles.delete(name);
    const { logger, alerts } = this.#options;
    logger.info("a dependency is well again", { check: name, message });
    alerts.send({ event: `${name}_recovered`, severity: "info", message, facts: { check: name } });
  }
}
