import type { Logger } from "./logger.ts";

/** Something that an operator should hear of outside the log. */
export interface Alert {
  /** What happened, as in `ledger_head` or `ledger_failed`. */
  readonly event: string;
  readonly severity: "info" | "warning" | "error";
  readonly message: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

export interface Alerts {
  /** Never throws and never waits: what cannot be delivered is logged and dropped. */
  send(alert: Alert): void;
  /** Resolves when what was sent has arrived, or has failed. */
  close(): Promise<void>;
}

export interface AlertsOptions {
  /** Empty: nobody is told. */
  readonly webhook: string;
  readonly logger: Logger;
}

const DELIVERY_TIMEOUT_MS = 5000;
const ATTEMPTS = 2;
/** Alerts that wait for a webhook that does not answer. */
const MAX_WAITING = 100;

/** Posts alerts to the webhook as JSON, one after another, in their order. */
export function createAlerts({ webhook, logger }: AlertsOptions): Alerts {
  let waiting = 0;
  let last: Promise<void> = Promise.resolve();
  return {
    send(alert) {
      if (webhook === "") return;
      if (waiting >= MAX_WAITING) {
        logger.warning("alert dropped, since the webhook is too slow", { event: alert.event });
        return;
      }
      waiting += 1;
      const body = JSON.stringify({ time: new Date().toISOString(), ...alert });
      last = last.then(async () => {
        await deliver(webhook, body).catch((error: unknown) =>
          logger.warning("alert not delivered", { event: alert.event, reason: reasonOf(error) }),
        );
        waiting -= 1;
      });
    },
    close: () => last,
  };
}

async function deliver(webhook: string, body: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await fetch(webhook, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
        // A redirect could carry the alert to somebody else.
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

/** Messages of `fetch` may name the whole address, which often holds a secret. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return error.message.startsWith("the webhook") ? error.message : error.name;
}
