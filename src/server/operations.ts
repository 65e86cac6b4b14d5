import type { Config } from "../config/schema.ts";
import type { WebhookAlerts } from "../telemetry/alerts.ts";
import { Health } from "../telemetry/health.ts";
import { HealthWatch } from "../telemetry/health-watch.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import type { CertificateInUse } from "../transport/http/tls.ts";
import type { ControlSocket } from "./control-socket.ts";
import type { Dashboard, DashboardAddress } from "./open-dashboard.ts";
import { LedgerCheck } from "./ledger-check.ts";
import { healthChecks } from "./health-checks.ts";
import type { OpenGovernance } from "./open-governance.ts";
import { type OpenMetrics, openMetrics } from "./open-metrics.ts";
import type { Reloader } from "./reloader.ts";
import { followState } from "./sandbox-metrics.ts";
import type { SandboxPart } from "./serve-sandboxes.ts";

export interface OperationsParts {
  readonly config: Config;
  readonly logger: Logger;
  /** Absent when they are switched off. */
  readonly metrics: Metrics | undefined;
  readonly governance: OpenGovernance | undefined;
  readonly sandboxes: SandboxPart | undefined;
  readonly alerts: WebhookAlerts;
}

/** What operators see of a server that stays: health, metrics, and the socket for commands on the same machine. */
export class Operations {
  readonly health: Health;
  readonly metrics: Metrics | undefined;
  /** The page for operators, once there is one. */
  dashboard: Dashboard | undefined;
  /** What clients are shown, once somebody listens with TLS. */
  certificate: (() => CertificateInUse | undefined) | undefined;
  /** What reads the configuration again, once there is one. */
  reloader: Pick<Reloader, "last"> | undefined;
  readonly #parts: OperationsParts;
  #control: ControlSocket | undefined;
  #measuring: OpenMetrics | undefined;
  #watch: HealthWatch | undefined;
  readonly #ledgerCheck: LedgerCheck | undefined;

  constructor(parts: OperationsParts) {
    const { config, logger, metrics, governance, sandboxes, alerts } = parts;
    this.#parts = parts;
    this.metrics = metrics;
    const { verifyHours: everyHours } = config.ledger;
    this.#ledgerCheck =
      governance === undefined || everyHours === 0
        ? undefined
        : new LedgerCheck({ ledger: governance.ledger, everyHours, logger });
    const { operator } = sandboxes ?? {};
    const certificate = (): CertificateInUse | undefined => this.certificate?.();
    const looked = { config, governance, sandboxes: operator, ledgerCheck: this.#ledgerCheck, alerts, certificate };
    this.health = new Health(healthChecks(looked));
    if (metrics !== undefined) followState(metrics, this.health, sandboxes);
  }

  async open(): Promise<void> {
    const { config, logger, metrics, governance, sandboxes, alerts } = this.#parts;
    governance?.watch();
    const { openControlSocket } = await import("./control-socket.ts");
    const { root: dataFolder } = config.sandbox;
    const dashboard = (): DashboardAddress | undefined => this.dashboard?.address();
    const looked = { sandboxes: sandboxes?.operator, governance, dashboard };
    this.#control = await openControlSocket({ dataFolder, logger, ...looked });
    const everyMs = config.alerts.checkSeconds * 1000;
    this.#watch = new HealthWatch({ health: this.health, alerts, logger, everyMs });
    this.#ledgerCheck?.start();
    this.#measuring = metrics && (await openMetrics(metrics, config, logger));
  }

  async close(): Promise<void> {
    this.#watch?.close();
    this.#ledgerCheck?.close();
    await this.#measuring?.close();
    await this.#control?.close();
  }
}
