import type { Logger } from "./logger.ts";

/** A message to operators outside the log. */
export interface Alert {
  /** The name of the event, for example `ledger_head` or `ledger_failed`. */
  readonly event: string;
  readonly severity: "info" | "warning" | "error";
  readonly message: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

export interface Alerts {
  /** Never throws and never waits. A failed delivery is logged, and retried until the server stops. */
  send(alert: Alert): void;
  /** Resolves when all alerts are delivered, or when a last attempt has failed. */
  close(): Promise<void>;
}

export interface WebhookAlerts extends Alerts {
  /** The last delivery failed, so alerts are queued. */
  readonly isInTrouble: boolean;
}

export interface AlertsOptions {
  /** Empty: alerts are not sent. */
  readonly webhook: string;
  readonly logger: Logger;
  readonly firstPauseMs?: number;
}

const DELIVERY_TIMEOUT_MS = 5000;
const ATTEMPTS = 2;
/** The limit of queued alerts. Further alerts are dropped. */
const MAX_WAITING = 100;
/**
 * For this event only the newest alert is queued, because it supersedes the older ones: they must not fill the queue.
 */
const LATEST_ONLY = "ledger_head";
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;

interface Waiting {
  readonly event: string;
  readonly body: string;
}

/** Posts alerts to the webhook as JSON, one at a time, in order. */
export function createAlerts({ webhook, logger, firstPauseMs = FIRST_PAUSE_MS }: AlertsOptions): WebhookAlerts {
  return new AlertQueue(webhook, logger, firstPauseMs);
}

class AlertQueue implements WebhookAlerts {
  readonly #webhook: string;
  readonly #logger: Logger;
  readonly #firstPauseMs: number;
  readonly #waiting: Waiting[] = [];
  #delivering: Promise<void> | undefined;
  #isClosing = false;
  #wakeUp: (() => void) | undefined;
  isInTrouble = false;

  constructor(webhook: string, logger: Logger, firstPauseMs: number) {
    this.#webhook = webhook;
    this.#logger = logger;
    this.#firstPauseMs = firstPauseMs;
  }

  send(alert: Alert): void {
    if (this.#webhook === "") return;
    if (alert.event === LATEST_ONLY) this.#forgetOlder();
    if (this.#waiting.length >= MAX_WAITING) {
      this.#logger.warning("alert dropped, since the webhook is too slow", { event: alert.event });
      return;
    }
    this.#waiting.push({ event: alert.event, body: JSON.stringify({ time: new Date().toISOString(), ...alert }) });
    this.#delivering ??= this.#deliverAll();
  }

  /** Removes the queued alert of this event. The first alert in the queue is being delivered, so it stays. */
  #forgetOlder(): void {
    const at = this.#waiting.findIndex(({ event }, index) => index > 0 && event === LATEST_ONLY);
    if (at > 0) this.#waiting.splice(at, 1);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#wakeUp?.();
    await this.#delivering;
  }

  async #deliverAll(): Promise<void> {
    let pauseMs = this.#firstPauseMs;
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (await this.#isDelivered(next)) {
        this.#waiting.shift();
        pauseMs = this.#firstPauseMs;
        continue;
      }
      if (this.#isClosing) break;
      await this.#pause(pauseMs);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
    // There is no await between the check for the next alert and this line, so no alert can be queued unnoticed.
    this.#delivering = undefined;
  }

  async #isDelivered({ event, body }: Waiting): Promise<boolean> {
    try {
      await deliver(this.#webhook, body);
    } catch (error) {
      if (!this.isInTrouble) this.#logger.warning("alert not delivered", { event, reason: reasonOf(error) });
      this.isInTrouble = true;
      return false;
    }
    if (this.isInTrouble) this.#logger.info("alerts are delivered again", { event });
    this.isInTrouble = false;
    return true;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms).unref();
      this.#wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

async function deliver(webhook: string, body: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await fetch(webhook, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
        // A redirect could send the alert to another server.
        redirect: "error",
        signal: AbortSignal.timeout(DELIVERY_TIMEOUT_MS),
      });
      await response.body?.cancel();
      if (response.ok) return;
      throw new Error(`the webhook answered ${response.status}`);
    } catch (error) {
      if (attempt >= ATTEMPTS) throw error;
    }
  }
}

/** Error messages of `fetch` may contain the URL, which often contains a secret. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return error.message.startsWith("the webhook") ? error.message : error.name;
}
