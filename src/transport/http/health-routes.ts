import type { HealthReport } from "../../telemetry/health.ts";
import { type HttpExchange, sendJson } from "./exchange-io.ts";

export interface HealthSource {
  report(): Promise<HealthReport>;
}

export interface HealthRoutesOptions {
  readonly health: HealthSource | undefined;
  readonly version: string;
  readonly isDraining: () => boolean;
}

type Serve = (exchange: HttpExchange) => void | Promise<void>;

interface HealthRoute {
  readonly methods: Readonly<Record<string, Serve>>;
  readonly isOpen: true;
  readonly isAlwaysServed: true;
}

/** Proxies and browsers must not cache the responses. */
const HEADERS = { "cache-control": "no-store" } as const;

/** `/health`, `/health/live` and `/health/ready`, for people, process supervisors and load balancers. */
export function healthRoutes(options: HealthRoutesOptions): readonly (readonly [string, HealthRoute])[] {
  const { version } = options;
  const live: Serve = ({ response }) => sendJson(response, 200, { status: "ok", version }, HEADERS);
  const ready: Serve = async ({ response }) => {
    const { status } = await stateOf(options);
    sendJson(response, status === "unavailable" || status === "draining" ? 503 : 200, { status, version }, HEADERS);
  };
  const whole: Serve = async ({ response }) => {
    const { status, checks } = await stateOf(options);
    const code = status === "unavailable" || status === "draining" ? 503 : 200;
    sendJson(response, code, { status, version, checks }, HEADERS);
  };
  return [
    ["/health", route(whole)],
    ["/health/live", route(live)],
    ["/health/ready", route(ready)],
  ];
}

function route(serve: Serve): HealthRoute {
  return { methods: { GET: serve, HEAD: serve }, isOpen: true, isAlwaysServed: true };
}

async function stateOf({
  health,
  isDraining,
}: HealthRoutesOptions): Promise<
  Pick<HealthReport, "checks"> & { readonly status: HealthReport["status"] | "draining" }
> {
  const { status, checks } = (await health?.report()) ?? { status: "ok", checks: {} };
  return { status: isDraining() ? "draining" : status, checks };
}
