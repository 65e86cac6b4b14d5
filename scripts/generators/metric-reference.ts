import { METRICS, type MetricFacts } from "../../src/telemetry/metrics/catalogue.ts";
import type { Generator } from "./generator.ts";
import { toTable } from "./markdown-table.ts";

const INTRODUCTION = `# Metrics

<!-- Generated from src/telemetry/metrics/catalogue.ts by npm run generate. Edit that file. -->

What \`GET /metrics\` shows, in Prometheus' text format. Histograms have the series \`…_bucket\`, \`…_sum\` and \`…_count\`. A metric
without any value is left out. Each has at most 500 sets of labels; what is beyond counts under \`other\`.
[operations.md](../operations.md) says who may read them.

`;

export const metricReference: Generator = () => {
  const metrics: (MetricFacts & { readonly name: string })[] = Object.values(METRICS);
  const rows = metrics.map(({ name, type, labels, help }) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(", "),
    help,
  ]);
  return new Map([
    ["docs/reference/metrics.md", INTRODUCTION + toTable(["metric", "type", "labels", "what it says"], rows)],
  ]);
};
