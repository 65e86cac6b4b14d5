import type { IncomingMessage } from "node:http";
import { ADMIN_SCOPE, type Principal } from "../../auth/principal.ts";
import { requireScope } from "../../auth/protected-resource.ts";
import type { Config } from "../../config/schema.ts";
import { isLoopbackHost } from "../../config/value-rules.ts";
import { OwlError } from "../../errors/owl-error.ts";
import { METRICS_CONTENT_TYPE } from "../../telemetry/metrics/metrics.ts";
import type { HttpExchange } from "./exchange-io.ts";
import { isProxied } from "./proxied-request.ts";

export interface MetricsDoor {
  text(): Promise<string>;
  /** Requests whose token was refused, by the reason. */
  readonly loginsRefused?: { add(labels: readonly string[], amount: number): void };
}

export const METRICS_PATH = "/metrics";

/**
 * `GET /metrics`. With auth on, operators read it. With auth off it is open where only this machine gets in: the server
 * listens on loopback, and no proxy has passed the request on. Everywhere else it needs a listener of its own.
 */
export async function sendMetrics(door: MetricsDoor, config: Config, exchange: HttpExchange): Promise<void> {
  assertMayRead(config, exchange.principal, exchange.request);
  const text = await door.text();
  const { response } = exchange;
  response.writeHead(200, {
    "content-type": METRICS_CONTENT_TYPE,
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
  });
  response.end(text);
}

function assertMayRead({ auth, http }: Config, principal: Principal, { headers }: IncomingMessage): void {
  if (auth.enabled) return requireScope(principal, ADMIN_SCOPE);
  if (isLoopbackHost(http.host) && !isProxied(headers)) return;
  throw new OwlError("forbidden", "metrics are not for everybody, and with auth off nobody is known", {
    facts: { reason: "auth_disabled" },
    hint: `turn auth.enabled on and send a token with the scope ${ADMIN_SCOPE}, or set telemetry.metricsAddress to a listener of their own`,
  });
}
