import type { HealthReport } from "../../telemetry/health.ts";
import type { OpenRequests } from "../open-requests.ts";
import { type HttpExchange, sendJson } from "./exchange-io.ts";

export interface HealthSource {
  report(): Promise<HealthReport>;
}

export interface HealthEndpointOptions {
  readonly health: HealthSource | undefined;
  readonly version: string;
  readonly requests: Pick<OpenRequests, "isDraining">;
}

type State = Pick<HealthReport, "checks"> & { readonly status: HealthReport["status"] | "draining" };

/** No cache may keep these answers. */
const HEADERS = { "cache-control": "no-store" } as const;

/** For people, process supervisors and load balancers. */
export class HealthEndpoint {
  readonly #options: HealthEndpointOptions;

  constructor(options: HealthEndpointOptions) {
    this.#options = options;
  }

  async all({ response }: HttpExchange): Promise<void> {
    const { status, checks } = await this.#state();
    sendJson(response, statusCodeOf(status), { status, version: this.#options.version, checks }, HEADERS);
  }

  live({ response }: HttpExchange): void {
    sendJson(response, 200, { status: "ok", version: this.#options.version }, HEADERS);
  }

  async ready({ response }: HttpExchange): Promise<void> {
    const { status } = await this.#state();
    sendJson(response, statusCodeOf(status), { status, version: this.#options.version }, HEADERS);
  }

  async #state(): Promise<State> {
    const { health, requests } = this.#options;
    const { status, checks } = (await health?.report()) ?? { status: "ok", checks: {} };
    return { status: requests.isDraining ? "draining" : status, checks };
  }
}

function statusCodeOf(status: State["status"]): number {
  return status === "unavailable" || status === "draining" ? 503 : 200;
}
