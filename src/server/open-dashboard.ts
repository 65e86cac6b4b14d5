import type { Authenticator } from "../auth/authenticator.ts";
import type { Config } from "../config/schema.ts";
import type { ApiRoute } from "../operator/api.ts";
import { OperatorSessions, type DashboardAddress, OneTimeLinks, LoginLimiter } from "../operator/operator-sessions.ts";
import type { OperatorActs } from "../call/operator-acts.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { DashboardEndpoint } from "../transport/http/dashboard-endpoint.ts";
import { LazyDashboard } from "../transport/http/dashboard-listener.ts";
import type { CloseStack } from "../platform/close-stack.ts";

export interface OpenDashboardOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** Not there when auth is off, as it is beside stdio: then a link opens the page. */
  readonly authenticator: Authenticator | undefined;
  /** Where it listens. */
  readonly host: string;
  readonly routes: () => Promise<readonly ApiRoute[]>;
  /** Where it is on record who comes and goes. */
  readonly acts: OperatorActs | undefined;
}

/** The page for operators: its sessions and links, and the endpoint that is loaded with the first request. */
export class Dashboard {
  readonly endpoint: LazyDashboard;
  readonly #options: OpenDashboardOptions;
  readonly #links = new OneTimeLinks();
  readonly #sessions: OperatorSessions;
  #origin: string | undefined;

  constructor(options: OpenDashboardOptions) {
    this.#options = options;
    const { idleSeconds, maxAgeSeconds } = options.config.dashboard;
    this.#sessions = new OperatorSessions({ idleMs: idleSeconds * 1000, maxAgeMs: maxAgeSeconds * 1000 });
    this.endpoint = new LazyDashboard(() => this.#openEndpoint());
  }

  /** It can be reached from now on. */
  listensAt(origin: string): void {
    this.#origin = origin;
  }

  /** Each link is a new one. Nothing before it listens. */
  address(): DashboardAddress | undefined {
    if (this.#origin === undefined) return undefined;
    const url = `${this.#origin}/dashboard`;
    return this.#options.authenticator === undefined
      ? { url, link: `${url}/open?key=${this.#links.create()}` }
      : { url };
  }

  /** Ends every session, and with them the streams of the page. */
  close(): void {
    this.#sessions.close();
  }

  async #openEndpoint(): Promise<DashboardEndpoint> {
    const { config, logger, authenticator, host, routes, acts } = this.#options;
    const [{ DashboardEndpoint: Endpoint }, { ClientAddresses }, { DashboardGuard }, { HostGuard }, { PageFiles }] =
      await Promise.all([
        import("../transport/http/dashboard-endpoint.ts"),
        import("../transport/http/client-address.ts"),
        import("../transport/http/dashboard-guard.ts"),
        import("../transport/http/guards.ts"),
        import("../operator/page-files.ts"),
      ]);
    const { allowedHosts, tls, keepAliveSeconds } = config.http;
    return new Endpoint({
      routes: await routes(),
      pages: new PageFiles(),
      guard: new DashboardGuard({
        guard: new HostGuard({ host, allowedHosts, corsEnabled: false, corsOrigins: [] }),
        allowedHosts,
        needsLoopback: authenticator === undefined,
        host,
      }),
      authenticator,
      sessions: this.#sessions,
      links: this.#links,
      limiter: new LoginLimiter(),
      addresses: new ClientAddresses(config.http.trustedProxies),
      isTls: config.transport === "http" && tls.certFile !== "",
      keepAliveMs: keepAliveSeconds * 1000,
      logger,
      acts,
    });
  }
}

export interface DashboardParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly routes: () => Promise<readonly ApiRoute[]>;
  readonly acts: OperatorActs | undefined;
}

/** The dashboard at `/dashboard` of the server's own port. */
export function dashboardOverHttp(parts: DashboardParts, authenticator: Authenticator): Dashboard {
  const { auth, http } = parts.config;
  return new Dashboard({ ...parts, authenticator: auth.enabled ? authenticator : undefined, host: http.host });
}

/** The dashboard on a port of its own, beside stdio. */
export async function dashboardBesideStdio(stack: CloseStack, parts: DashboardParts): Promise<Dashboard> {
  const { config, logger } = parts;
  const { port } = config.dashboard;
  const { listenForDashboard } = await import("../transport/http/dashboard-listener.ts");
  const dashboard = new Dashboard({ ...parts, authenticator: undefined, host: "localhost" });
  const listener = await listenForDashboard(dashboard.endpoint, port).catch((error: unknown) => {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new Error(`dashboard.port: ${port} cannot be used (${code}); choose another one, or 0 for any that is free`);
  });
  stack.add(listener);
  stack.add(dashboard);
  dashboard.listensAt(listener.origin);
  logger.info("dashboard", { url: `${listener.origin}/dashboard` });
  return dashboard;
}
