import type { SandboxTime, SandboxTimes } from "../sandbox/sandbox-times.ts";
import type { Health } from "../telemetry/health.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import type { HistogramSeries } from "../telemetry/metrics/series.ts";
import { PACKAGE_VERSION } from "./package-version.ts";
import type { SandboxPart } from "./serve-sandboxes.ts";

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
