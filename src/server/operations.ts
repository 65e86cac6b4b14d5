import type { Config } from "../config/schema.ts";
import type { WebhookAlerts } from "../telemetry/alerts.ts";
import type { Health } from "../telemetry/health.ts";
import { HealthWatch } from "../telemetry/health-watch.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type Metrics, followProcess } from "../telemetry/metrics/metrics.ts";
import type { DashboardAddress } from "../operator/operator-sessions.ts";
import type { CloseStack } from "../platform/close-stack.ts";
import type { LedgerCheck } from "../governance/ledger/ledger-check.ts";
import type { Governance } from "../call/governed-work.ts";
import type { OperatorSandboxes } from "../operator/sandbox-service.ts";
import type { SandboxPart } from "./serve-sandboxes.ts";
import type { SandboxTime, SandboxTimes } from "../sandbox/sandbox-times.ts";
import type { HistogramSeries } from "../telemetry/metrics/series.ts";
import { PACKAGE_VERSION } from "../config/package-version.ts";

export interface OperationsOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly governance: Governance | undefined;
  readonly operatorSandboxes: OperatorSandboxes | undefined;
  readonly health: Health;
  readonly ledgerCheck: LedgerCheck | undefined;
  readonly metrics: Metrics | undefined;
  readonly alerts: WebhookAlerts;
  /** The address of the dashboard, once the server listens. */
  readonly dashboard: () => DashboardAddress | undefined;
}

/** Starts what operators need of a server that stays: the control socket, health alerts, verification, metrics. */
export async function openOperations(stack: CloseStack, options: OperationsOptions): Promise<void> {
  const { config, logger, governance, operatorSandboxes, health, ledgerCheck, metrics, alerts, dashboard } = options;
  governance?.watch();
  const { openControlSocket } = await import("../operator/control-socket.ts");
  const { root: dataFolder } = config.sandbox;
  const control = await openControlSocket({ dataFolder, logger, sandboxes: operatorSandboxes, governance, dashboard });
  if (control !== undefined) stack.add(control);
  if (metrics !== undefined) stack.add(await openMetrics(metrics, config, logger));
  ledgerCheck?.start();
  if (ledgerCheck !== undefined) stack.add(ledgerCheck);
  stack.add(new HealthWatch({ health, alerts, logger, everyMs: config.alerts.checkSeconds * 1000 }));
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

async function listen(source: Metrics, address: string, logger: Logger): Promise<{ close(): Promise<void> }> {
  const { listenForMetrics } = await import("../transport/http/metrics-endpoint.ts");
  return listenForMetrics({ address, source, logger }).catch((error: unknown) => {
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
    const { layer, template: usual } = sandboxes;
    const runtimeOf = (template: string): string => layer.runtimeOf(template) ?? "none";
    metrics.sandboxes.set(["ready", runtimeOf(usual), usual], 0);
    for (const { state, runtime, template } of layer.services.sandboxes.listAll())
      metrics.sandboxes.add([state, runtime, template], 1);
    for (const [template, count] of layer.pooled())
      metrics.sandboxes.add(["pooled", runtimeOf(template), template], count);
  });
  metrics.onRead(async () => {
    const { checks } = await health.report();
    for (const [name, { status }] of Object.entries(checks))
      metrics.health.set([name], status === "ok" ? 1 : status === "degraded" ? 0.5 : 0);
  });
}
