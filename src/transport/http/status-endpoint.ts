import { protectedResourceMetadata } from "../../auth/protected-resource.ts";
import type { Config } from "../../config/schema.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import { SUPPORTED_VERSIONS } from "../../mcp/versions.ts";
import { type HttpExchange, sendJson } from "./exchange-io.ts";
import type { HealthSource } from "./health-endpoint.ts";
import { originOf } from "./request-target.ts";

export interface StatusEndpointOptions {
  readonly mcp: Mcp;
  readonly config: Config;
  readonly health: HealthSource | undefined;
  readonly sessionCount: () => number;
}

/** What the server says of itself. */
export class StatusEndpoint {
  readonly #options: StatusEndpointOptions;
  readonly #startedAt: number = Date.now();

  constructor(options: StatusEndpointOptions) {
    this.#options = options;
  }

  async status({ response, principal, label }: HttpExchange): Promise<void> {
    const { mcp, config, health, sessionCount } = this.#options;
    const report = await health?.report();
    sendJson(response, 200, {
      status: report === undefined || report.status === "ok" ? "ok" : "degraded",
      ...(report && { checks: report.checks }),
      server: mcp.serverInfo,
      protocolVersions: SUPPORTED_VERSIONS,
      uptimeSeconds: Math.round((Date.now() - this.#startedAt) / 1000),
      sessions: sessionCount(),
      tools: mcp.pipeline.view.toolCount({ principal, label }),
      auth: config.auth.enabled,
    });
  }

  /** RFC 9728: where a client gets a token. */
  resourceMetadata({ request, response }: HttpExchange): void {
    const { config } = this.#options;
    const resource = `${originOf(request, config)}/mcp`;
    sendJson(response, 200, protectedResourceMetadata({ resource, issuer: config.auth.jwt.issuer, scopes: [] }));
  }
}
