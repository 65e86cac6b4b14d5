import type { Authenticator } from "../auth/authenticator.ts";
import type { Config } from "../config/schema.ts";
import type { ApiRoute } from "../operator/api.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Assembly } from "./assemble.ts";
import type { Dashboard } from "./open-dashboard.ts";

export interface DashboardParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly assembly: Assembly;
}

/** The page at `/dashboard` of the server's own port; nothing when it is switched off. */
export async function dashboardOverHttp(
  parts: DashboardParts,
  authenticator: Authenticator,
): Promise<Dashboard | undefined> {
  const { config } = parts;
  if (!config.dashboard.enabled) return undefined;
  return open(parts, { authenticator: config.auth.enabled ? authenticator : undefined, host: config.http.host });
}

export interface ServedDashboard {
  close(): Promise<void>;
}

/** The page on a port of its own, beside stdio. */
export async function dashboardBesideStdio(parts: DashboardParts): Promise<ServedDashboard | undefined> {
  const { config, logger } = parts;
  const { enabled, besideStdio, port } = config.dashboard;
  if (!enabled || !besideStdio) return undefined;
  const dashboard = await open(parts, { authenticator: undefined, host: "localhost" });
  const { listenForDashboard } = await import("../transport/http/dashboard-listener.ts");
  const listener = await listenForDashboard(dashboard.gate, port).catch((error: unknown) => {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new Error(`dashboard.port: ${port} cannot be used (${code}); choose another one, or 0 for any that is free`);
  });
  dashboard.listensAt(listener.origin);
  logger.info("dashboard", { url: `${listener.origin}/dashboard` });
  return {
    async close() {
      dashboard.close();
      await listener.close();
    },
  };
}

async function open(
  { config, logger, assembly }: DashboardParts,
  { authenticator, host }: { readonly authenticator: Authenticator | undefined; readonly host: string },
): Promise<Dashboard> {
  const { Dashboard: Opened } = await import("./open-dashboard.ts");
  const routes = (): Promise<readonly ApiRoute[]> => assembly.dashboardRoutes();
  const dashboard = new Opened({ config, logger, authenticator, host, routes, acts: assembly.operators?.acts });
  assembly.operations.dashboard = dashboard;
  return dashboard;
}
