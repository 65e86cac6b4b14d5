import type { Config } from "../config/schema.ts";
import type { WebhookAlerts } from "../telemetry/alerts.ts";
import { Health } from "../telemetry/health.ts";
import { HealthWatch } from "../telemetry/health-watch.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type Metrics, followProcess } from "../telemetry/metrics/metrics.ts";
import type { ControlSocket } from "../operator/control-socket.ts";
import type { DashboardAddress } from "../operator/operator-sessions.ts";
import type { Dashboard } from "./open-dashboard.ts";
import { LedgerCheck } from "../governance/ledger/ledger-check.ts";
import { type CertificateInUse, healthChecks } from "../operator/health-checks.ts";
import type { Governance } from "../call/governed-work.ts";
import type { Reloader } from "./reloader.ts";
import type { SandboxPart } from "./serve-sandboxes.ts";
import type { SandboxTime, SandboxTimes } from "../sandbox/sandbox-times.ts";
import type { HistogramSeries } from "../telemetry/metrics/series.ts";
import { PACKAGE_VERSION } from "../config/package-version.ts";

export interface OperationsParts {
  readonly config: Config;
  readonly logger: Logger;
  /** Absent when they are switched off. */
  readonly metrics: Metrics | undefined;
  readonly governance: Governance | undefined;
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
    const { openControlSocket } = await import("../operator/control-socket.ts");
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

export interface OpenMetrics {
  close(): Promise<void>;
}

/** Measures the process from now on, and lets others read on an address of their own where the operator wants that. */
export async function openMetrics(metrics: Metrics, { telemetry }: Config, logger: Logger): Promise<OpenMetrics> {
  const stop = followProcess(metrics);
  const listener =
    telemetry.metricsAddress === "" ? undefined : await listen(metrics, telemetry.metricsAddress, logger);
  return {
    async close() {
      stop();
      await listener?.close();
    },
  };
}

async function listen(door: Metrics, address: string, logger: Logger): Promise<{ close(): Promise<void> }> {
  const { listenForMetrics } = await import("../transport/http/metrics-listener.ts");
  return listenForMetrics({ address, door, logger }).catch((error: unknown) => {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    // Without its cause: whoever explains listeners that fail would take it for the server's own port.
    throw new Error(`telemetry.metricsAddress: ${address} cannot be used (${code}); choose another address or port`);
  });
}

/** What callers of sandboxes waited for. */
export function sandboxTimes({ createSeconds, firstResultSeconds }: Metrics): SandboxTimes {
  const into =
    (series: HistogramSeries) =>
    ({ template, isWarm, durationMs }: SandboxTime): void =>
      series.observe([template, String(isWarm)], durationMs / 1000);
  return { created: into(createSeconds), firstResult: into(firstResultSeconds) };
}

/** What is looked at when somebody reads the metrics, in place of being counted as it happens. */
export function followState(metrics: Metrics, health: Health, sandboxes: SandboxPart | undefined): void {
  metrics.buildInfo.set([PACKAGE_VERSION, process.version], 1);
  for (const outcome of ["exported", "dropped"]) metrics.traceSpans.add([outcome], 0);
  metrics.onRead(() => {
    metrics.sandboxes.clear();
    if (sandboxes === undefined) return;
    const { layer, operator } = sandboxes;
    const runtimeOf = (template: string): string => layer.runtimeOf(template) ?? "none";
    metrics.sandboxes.set(["ready", runtimeOf(sandboxes.template), sandboxes.template], 0);
    for (const { state, runtime, template } of operator.list()) metrics.sandboxes.add([state, runtime, template], 1);
    for (const [template, count] of layer.pooled())
      metrics.sandboxes.add(["pooled", runtimeOf(template), template], count);
  });
  metrics.onRead(async () => {
    const { checks } = await health.report();
    for (const [name, { status }] of Object.entries(checks))
      metrics.health.set([name], status === "ok" ? 1 : status === "degraded" ? 0.5 : 0);
  });
}
