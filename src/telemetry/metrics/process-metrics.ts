import { readdir } from "node:fs/promises";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Metrics } from "./metrics.ts";

const NANOSECONDS = 1e9;
/** How often the loop is looked at; Node counts it into every value. */
const RESOLUTION_MS = 20;

/** What the process itself uses. Gives a function that stops the measurement. */
export function followProcess(metrics: Metrics): () => void {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  metrics.startTime.set([], Math.round((Date.now() / 1000 - process.uptime()) * 1000) / 1000);
  metrics.onRead(async () => {
    const { rss, heapUsed } = process.memoryUsage();
    metrics.residentMemory.set([], rss);
    metrics.heapUsed.set([], heapUsed);
    const { user, system } = process.cpuUsage();
    metrics.cpuSeconds.set([], (user + system) / 1e6);
    const stats = { mean: delay.mean, p50: delay.percentile(50), p99: delay.percentile(99), max: delay.max };
    for (const [stat, value] of Object.entries(stats))
      metrics.loopDelay.set(
        [stat],
        Number.isFinite(value) ? Math.max(0, value / NANOSECONDS - RESOLUTION_MS / 1000) : 0,
      );
    delay.reset();
    const open = await readdir("/proc/self/fd").catch(() => undefined);
    if (open !== undefined) metrics.openFiles.set([], open.length);
  });
  return () => void delay.disable();
}
