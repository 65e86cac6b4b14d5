import { METRICS } from "../../src/telemetry/metrics/catalogue.ts";
import type { Generator } from "./generator.ts";

interface Panel {
  readonly title: string;
  readonly unit: string;
  readonly queries: readonly { readonly expr: string; readonly legend: string }[];
}

const { requests, calls, callSeconds, errors, refusals, cost, egress, ledgerSeconds } = METRICS;
const { createSeconds, refillSeconds, sandboxes, health, loopDelay, residentMemory, cpuSeconds, openFiles } = METRICS;
const { budgetUsed, firstResultSeconds, sessionSeconds } = METRICS;
const RATE = "[$__rate_interval]";

const PANELS: readonly Panel[] = [
  panel("Requests by method", "reqps", [
    `sum by (mcp_method_name) (rate(${requests.name}_count${RATE}))`,
    "{{mcp_method_name}}",
  ]),
  panel("Request time", "s", ...[0.5, 0.95, 0.99].map((share) => quantile(requests.name, share))),
  panel("Errors by type", "reqps", [
    `sum by (error_type) (rate(${requests.name}_count{error_type!=""}${RATE}))`,
    "{{error_type}}",
  ]),
  panel("Calls by outcome", "reqps", [`sum by (outcome) (rate(${calls.name}${RATE}))`, "{{outcome}}"]),
  panel("Calls by tool", "reqps", [`topk(10, sum by (tool) (rate(${calls.name}{kind="tool"}${RATE})))`, "{{tool}}"]),
  panel("Tool time, 95 of 100 calls", "s", [
    `histogram_quantile(0.95, sum by (le, tool) (rate(${callSeconds.name}_bucket${RATE})))`,
    "{{tool}}",
  ]),
  panel("Failed calls by kind", "reqps", [`sum by (kind) (rate(${errors.name}${RATE}))`, "{{kind}}"]),
  panel("Refused by governance", "reqps", [`sum by (rule) (rate(${refusals.name}${RATE}))`, "{{rule}}"]),
  panel(
    "Cost and egress",
    "short",
    [`rate(${cost.name}${RATE})`, "cost units"],
    [`rate(${egress.name}${RATE})`, "bytes"],
  ),
  panel("Budget used", "percentunit", [`max by (rule) (${budgetUsed.name})`, "{{rule}}"]),
  panel("Ledger", "s", quantile(ledgerSeconds.name, 0.5), quantile(ledgerSeconds.name, 0.99)),
  panel("Sandboxes", "short", [`sum by (state, template) (${sandboxes.name})`, "{{state}} {{template}}"]),
  panel("Sandbox start", "s", [
    `histogram_quantile(0.95, sum by (le, warm) (rate(${createSeconds.name}_bucket${RATE})))`,
    "warm {{warm}}",
  ]),
  panel("First result in a new sandbox", "s", [
    `histogram_quantile(0.95, sum by (le, warm) (rate(${firstResultSeconds.name}_bucket${RATE})))`,
    "warm {{warm}}",
  ]),
  panel("Pool refill", "s", quantile(refillSeconds.name, 0.95)),
  panel("Health", "short", [health.name, "{{check}}"]),
  panel("Event loop delay", "s", [loopDelay.name, "{{stat}}"]),
  panel("Memory", "bytes", [residentMemory.name, "resident"]),
  panel("Processor", "percentunit", [`rate(${cpuSeconds.name}${RATE})`, "cores"]),
  panel("Sessions that ended", "reqps", [
    `sum by (network_transport) (rate(${sessionSeconds.name}_count${RATE}))`,
    "{{network_transport}}",
  ]),
  panel("Open files", "short", [openFiles.name, "files"]),
];

const WIDTH = 8;
const HEIGHT = 7;
const COLUMNS = 3;

/** A dashboard for Grafana: its queries name metrics through the catalogue, so that none can go stale. */
export const grafanaDashboard: Generator = () => {
  const dashboard = {
    title: "OwlClaw",
    uid: "owlclaw",
    schemaVersion: 39,
    refresh: "30s",
    time: { from: "now-1h", to: "now" },
    tags: ["mcp"],
    templating: {
      list: [{ name: "datasource", type: "datasource", query: "prometheus", label: "Prometheus" }],
    },
    panels: PANELS.map(toPanel),
  };
  return new Map([["deploy/grafana/owlclaw.json", `${JSON.stringify(dashboard, null, 2)}\n`]]);
};

function panel(title: string, unit: string, ...queries: readonly (readonly [string, string])[]): Panel {
  return { title, unit, queries: queries.map(([expr, legend]) => ({ expr, legend })) };
}

function quantile(name: string, share: number): readonly [string, string] {
  return [`histogram_quantile(${share}, sum by (le) (rate(${name}_bucket${RATE})))`, `p${share * 100}`];
}

function toPanel({ title, unit, queries }: Panel, index: number): Record<string, unknown> {
  return {
    id: index + 1,
    type: "timeseries",
    title,
    datasource: { type: "prometheus", uid: "${datasource}" },
    gridPos: { x: (index % COLUMNS) * WIDTH, y: Math.floor(index / COLUMNS) * HEIGHT, w: WIDTH, h: HEIGHT },
    fieldConfig: { defaults: { unit }, overrides: [] },
    targets: queries.map(({ expr, legend }, at) => ({
      refId: "ABCDE".charAt(at),
      expr,
      legendFormat: legend,
    })),
  };
}
