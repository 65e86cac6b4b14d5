import { get } from "node:https";
import { text } from "node:stream/consumers";
import type { Webhook } from "../services/webhook.ts";
import { type HttpServer, until } from "./harness.ts";

interface Expected {
  readonly check: string;
  readonly status: "down" | "degraded";
  /** What `/health` answers meanwhile. */
  readonly http: 200 | 503;
}

interface Health {
  readonly http: number;
  readonly checks: Readonly<Record<string, { readonly status: string; readonly message: string }>>;
}

/** Where a server answers, and its log as it grows. */
type TellingServer = Pick<HttpServer, "origin" | "logs">;

/** Asks by GET. */
export type Ask = (url: string) => Promise<{ readonly status: number; readonly body: string }>;

const askPlainly: Ask = async (url) => {
  const answer = await fetch(url);
  return { status: answer.status, body: await answer.text() };
};

/** Whatever the certificate says. */
export const askAnyway: Ask = (url) =>
  new Promise((resolve, reject) => {
    const request = get(url, { rejectUnauthorized: false, agent: false }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
    });
    request.on("error", reject);
  });

interface FaultStoryOptions {
  readonly ask?: Ask;
  /** Folders and addresses, which whoever may ask for the health must not read there. */
  readonly hidden: readonly string[];
}

/** How one server tells of one fault: in its health, by the webhook, in the log and in its metrics. */
export class FaultStory {
  readonly #server: TellingServer;
  readonly #webhook: Webhook;
  readonly #ask: Ask;
  readonly #hidden: readonly string[];

  constructor(server: TellingServer, webhook: Webhook, { ask = askPlainly, hidden }: FaultStoryOptions) {
    this.#server = server;
    this.#webhook = webhook;
    this.#ask = ask;
    this.#hidden = hidden;
  }

  async health(): Promise<Health> {
    const { status: http, body } = await this.#ask(`${this.#server.origin}/health`);
    for (const secret of this.#hidden) if (body.includes(secret)) throw new Error(`/health names ${secret}: ${body}`);
    return { http, ...(JSON.parse(body) as Pick<Health, "checks">) };
  }

  /** Waits until all four say the same. */
  async tellsOf({ check, status, http }: Expected): Promise<void> {
    await this.#until(() => this.#told(`${check}_${status}`).length > 0);
    await until(
      () => this.health(),
      (health) => health.checks[check]?.status === status && health.http === http,
    );
    await this.metricIs(check, status === "down" ? 0 : 0.5);
    const message = status === "down" ? "a dependency is down" : "a dependency needs care";
    await this.#until(() => this.#logged(message, check));
    this.#assertToldOnce(`${check}_${status}`);
  }

  async recovers(check: string): Promise<void> {
    await this.#until(() => this.#told(`${check}_recovered`).length > 0);
    await until(
      () => this.health(),
      (health) => health.checks[check]?.status === "ok" && health.http === 200,
    );
    await this.metricIs(check, 1);
    await this.#until(() => this.#logged("a dependency is well again", check));
    this.#assertToldOnce(`${check}_recovered`);
  }

  #assertToldOnce(event: string): void {
    const { length } = this.#told(event);
    if (length !== 1) throw new Error(`${event} was told ${length} times`);
  }

  #told(event: string): Webhook["received"] {
    return this.#webhook.received.filter((alert) => alert.event === event);
  }

  #logged(message: string, check: string): boolean {
    return this.#server.logs.some((line) => line["message"] === message && line["check"] === check);
  }

  async metricIs(check: string, value: number): Promise<void> {
    const line = `owlclaw_health_check_status{check="${check}"} ${value}\n`;
    await until(
      () => this.#ask(`${this.#server.origin}/metrics`),
      ({ body }) => body.includes(line),
    );
  }

  async #until(isSo: () => boolean): Promise<void> {
    await until(isSo, Boolean);
  }
}

export function alerting(webhook: Webhook, root: string): Record<string, unknown> {
  return { alerts: { webhook: webhook.url, checkSeconds: 1 }, sandbox: { enabled: false, root } };
}

export async function echo(url: string): Promise<Record<string, unknown>> {
  const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo", arguments: { text: "hi" } } };
  const headers = { "content-type": "application/json" };
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return (await answer.json()) as Record<string, unknown>;
}

export const REFUSED: object = { error: { data: { kind: "store_unavailable" } } };
export const ANSWERED: object = { result: { content: [{ text: "hi" }] } };
