import type { Alerts } from "./alerts.ts";
import type { Health, HealthReport } from "./health.ts";
import type { Logger } from "./logger.ts";

/**
 * The reported status is the worst of this many checks: a worse status is reported at once, a better one only after all
 * of them.
 */
const STEADY_LOOKS = 2;
/** A problem that persists is reported again after this time, in case the first alert was lost. */
const REMIND_MS = 3_600_000;

/** From best to worst. The status `starting` is not reported. */
const STATUSES = ["ok", "degraded", "down"] as const;
type Status = (typeof STATUSES)[number];

interface Look {
  readonly status: Status;
  readonly message: string;
}

interface Watched {
  told: Status;
  toldAtMs: number;
  /** The last results, newest first. */
  looks: readonly Look[];
}

export interface HealthWatchOptions {
  readonly health: Pick<Health, "wholeReport">;
  readonly alerts: Alerts;
  readonly logger: Logger;
  readonly everyMs: number;
}

/** Checks the health at an interval. Reports each change of a status to the log and the webhook. */
export class HealthWatch {
  readonly #options: HealthWatchOptions;
  readonly #watched = new Map<string, Watched>();
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
      this.#judge(await this.#options.health.wholeReport());
    } finally {
      this.#isLooking = false;
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #judge({ checks }: HealthReport): void {
    for (const [name, { status, message, detail = message }] of Object.entries(checks))
      if (status !== "starting") this.#follow(name, { status, message: detail });
  }

  #follow(name: string, look: Look): void {
    const nowMs = performance.now();
    const known = this.#watched.get(name) ?? { told: "ok", toldAtMs: nowMs, looks: [] };
    this.#watched.set(name, known);
    known.looks = [look, ...known.looks].slice(0, STEADY_LOOKS);
    const worst = known.looks.reduce((most, each) => (isWorse(each, most) ? each : most), look);
    const isReminder = worst === look && look.status !== "ok" && nowMs - known.toldAtMs >= REMIND_MS;
    if (worst.status === known.told && !isReminder) return;
    known.told = worst.status;
    known.toldAtMs = nowMs;
    this.#tell(name, worst);
  }

  #tell(check: string, { status, message }: Look): void {
    const { logger, alerts } = this.#options;
    const facts = { check };
    if (status === "ok") {
      logger.info("a dependency is well again", { check, message });
      alerts.send({ event: `${check}_recovered`, severity: "info", message, facts });
      return;
    }
    if (status === "down") logger.error("a dependency is down", { check, reason: message });
    else logger.warning("a dependency needs care", { check, reason: message });
    alerts.send({ event: `${check}_${status}`, severity: status === "down" ? "error" : "warning", message, facts });
  }
}

function isWorse(one: Look, other: Look): boolean {
  return STATUSES.indexOf(one.status) > STATUSES.indexOf(other.status);
}
