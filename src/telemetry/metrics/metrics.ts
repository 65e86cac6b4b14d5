import { METRICS, type MetricFacts } from "./catalogue.ts";
import { HistogramSeries, type Metric, NumberSeries } from "./series.ts";
import { readdir } from "node:fs/promises";
import { monitorEventLoopDelay } from "node:perf_hooks";

export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** All metrics of one server, and their text in the Prometheus format. */
export class Metrics {
  readonly #all: Metric[] = [];
  readonly requests: HistogramSeries = this.#histogram(METRICS.requests);
  readonly sessionSeconds: HistogramSeries = this.#histogram(METRICS.sessionSeconds);
  readonly calls: NumberSeries = this.#number(METRICS.calls);
  readonly callSeconds: HistogramSeries = this.#histogram(METRICS.callSeconds);
  readonly errors: NumberSeries = this.#number(METRICS.errors);
  readonly refusals: NumberSeries = this.#number(METRICS.refusals);
  readonly loginsRefused: NumberSeries = this.#number(METRICS.loginsRefused);
  readonly cost: NumberSeries = this.#number(METRICS.cost);
  readonly budgetUsed: NumberSeries = this.#number(METRICS.budgetUsed);
  readonly egress: NumberSeries = this.#number(METRICS.egress);
  readonly ledgerSeconds: HistogramSeries = this.#histogram(METRICS.ledgerSeconds);
  readonly traceSpans: NumberSeries = this.#number(METRICS.traceSpans);
  readonly createSeconds: HistogramSeries = this.#histogram(METRICS.createSeconds);
  readonly firstResultSeconds: HistogramSeries = this.#histogram(METRICS.firstResultSeconds);
  readonly refillSeconds: HistogramSeries = this.#histogram(METRICS.refillSeconds);
  readonly sandboxes: NumberSeries = this.#number(METRICS.sandboxes);
  readonly health: NumberSeries = this.#number(METRICS.health);
  readonly buildInfo: NumberSeries = this.#number(METRICS.buildInfo);
  readonly loopDelay: NumberSeries = this.#number(METRICS.loopDelay);
  readonly heapUsed: NumberSeries = this.#number(METRICS.heapUsed);
  readonly residentMemory: NumberSeries = this.#number(METRICS.residentMemory);
  readonly cpuSeconds: NumberSeries = this.#number(METRICS.cpuSeconds);
  readonly openFiles: NumberSeries = this.#number(METRICS.openFiles);
  readonly startTime: NumberSeries = this.#number(METRICS.startTime);
  readonly #looks: (() => void | Promise<void>)[] = [];

  /** Registers a callback that runs before each scrape, to set gauges. */
  onRead(look: () => void | Promise<void>): void {
    this.#looks.push(look);
  }

  async text(): Promise<string> {
    for (const look of this.#looks) await look();
    const blocks = this.#all.flatMap((metric) => {
      const lines = metric.lines();
      if (lines.length === 0) return [];
      const { name, facts } = metric;
      return [`# HELP ${name} ${facts.help}`, `# TYPE ${name} ${facts.type}`, ...lines];
    });
    return `${blocks.join("\n")}\n`;
  }

  #number(definition: MetricFacts & { readonly name: string }): NumberSeries {
    const series = new NumberSeries(definition);
    this.#all.push(series);
    return series;
  }

  #histogram(definition: MetricFacts & { readonly name: string }): HistogramSeries {
    const series = new HistogramSeries(definition);
    this.#all.push(series);
    return series;
  }
}

const NANOSECONDS = 1e9;
/** The sampling interval of the event loop delay. Node includes it in every value. */
const RESOLUTION_MS = 20;

/** Sets the metrics of the process itself. Returns a function that stops the measurement. */
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
