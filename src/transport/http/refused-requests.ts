import type { IncomingMessage } from "node:http";
import type { OwlError } from "../../errors/owl-error.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { ClientAddresses } from "./client-address.ts";
import type { MetricsDoor } from "./metrics-route.ts";

const MAX_PATH_CHARS = 128;

export interface RefusedRequestsOptions {
  readonly logger: Logger;
  readonly metrics: Pick<MetricsDoor, "loginsRefused"> | undefined;
  readonly trustedProxies: readonly string[];
}

/** Tells of requests that were refused before any call, with the address that they came from. */
export class RefusedRequests {
  readonly #options: RefusedRequestsOptions;
  readonly #addresses: ClientAddresses;

  constructor(options: RefusedRequestsOptions) {
    this.#options = options;
    this.#addresses = new ClientAddresses(options.trustedProxies);
    // A counter that is there from the start lets Prometheus see its first step.
    options.metrics?.loginsRefused?.add(["token_missing"], 0);
  }

  add({ kind, message, facts }: OwlError, request: IncomingMessage, traceId: string): void {
    const { logger, metrics } = this.#options;
    const { method, url = "" } = request;
    const [path = ""] = url.slice(0, MAX_PATH_CHARS).split("?");
    logger.warning("request refused", {
      kind,
      reason: message,
      http_method: method,
      path,
      trace_id: traceId,
      client_address: this.#addresses.of(request),
    });
    if (kind === "unauthorized")
      metrics?.loginsRefused?.add([typeof facts["reason"] === "string" ? facts["reason"] : "other"], 1);
  }
}
