import type { Health } from "../telemetry/health.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import { PACKAGE_VERSION } from "./package-version.ts";
import type { SandboxPart } from "./serve-sandboxes.ts";

/** What is looked at when somebody reads the metrics, in place of being counted as it happens. */
export function followState(metrics: Metrics, health: Health, sandboxes: SandboxPart | undefined): void {
  metrics.buildInfo.set([PACKAGE_VERSION, process.version], 1);
  for (const outcome of ["exported", "dropped"]) metrics.traceSpans.add([outcome], 0);
  metrics.onRead(() => {
    metrics.sandboxes.clear();
    if (sandboxes === undefined) return;
    const found = sandboxes.layer.health();
    const runtime = found.status === "ok" ? found.runtime : "none";
    metrics.sandboxes.set(["ready", runtime, sandboxes.template], 0);
    for (const { state, runtime: of, template } of sandboxes.operator.list())
      metrics.sandboxes.add([state, of, template], 1);
    for (const [template, count] of sandboxes.layer.pooled())
      metrics.sandboxes.add(["pooled", runtime, template], count);
  });
  metrics.onRead(async () => {
    const { checks } = await health.report();
    for (const [name, { status }] of Object.entries(checks))
      metrics.health.set([name], status === "ok" ? 1 : status === "degraded" ? 0.5 : 0);
  });
}
