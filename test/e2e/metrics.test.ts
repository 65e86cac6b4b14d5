import { readFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { METRICS, type MetricFacts } from "../../src/telemetry/metrics/catalogue.ts";
import { until } from "../integration/harness.ts";
import { checkMetrics, PROMETHEUS_MISSING, type PrometheusService, startPrometheus } from "../services/prometheus.ts";
import { call, connectHttp, makePlace, Server } from "./sandbox-client.ts";

const ALL: (MetricFacts & { readonly name: string })[] = Object.values(METRICS);

/** A window that Grafana would choose stands as a variable in the queries. */
function dashboardQueries(): readonly string[] {
  const text = readFileSync(new URL("../../deploy/grafana/owlclaw.json", import.meta.url), "utf8");
  const { panels } = JSON.parse(text) as { panels: { targets: { expr: string }[] }[] };
  return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr.replaceAll("$__rate_interval", "1m")));
}

/** Those that show something once the server has served a few calls; a rate needs two scrapes. */
async function answersToAll(prometheus: PrometheusService): Promise<void> {
  for (const expression of dashboardQueries()) {
    await until(
      () => prometheus.query(expression),
      (found) => found.length > 0,
    );
  }
}

describe.skipIf(PROMETHEUS_MISSING !== undefined)(
  `metrics${PROMETHEUS_MISSING === undefined ? "" : `: ${PROMETHEUS_MISSING}`}`,
  () => {
    test("[004-R11.6] [004-R11.7] a real Prometheus scrapes the server and answers for every documented metric and every query of the dashboard", async () => {
      const server = new Server(makePlace(), {
        sandbox: { pool: { size: 1 } },
        governance: { defaults: { hidden: ["file_search"] }, tools: { file_write: { cost: 2 } } },
      });
      const url = new URL(await server.url());
      const prometheus = await startPrometheus(new URL("/metrics", url));
      onTestFinished(() => prometheus.stop());
      const client = await connectHttp(url.href);
      const made = await call(client, "sandbox_create", {});
      const session_id = String(made.structuredContent?.["session_id"]);
      await call(client, "file_write", { path: "a.txt", content: "x", session_id });
      await call(client, "code_run", { code: "1/0", session_id });
      await call(client, "file_search", { pattern: "x", session_id }).catch(() => undefined);
      const text = await (await fetch(new URL("/metrics", url))).text();
      expect(checkMetrics(text)).toBe("");
      for (const { name, type } of ALL) {
        // A metric that never comes ends the test with its time.
        await until(
          () => prometheus.query(type === "histogram" ? `${name}_count` : name),
          (found) => found.length > 0,
        );
      }
      await answersToAll(prometheus);
      const valueOf = async (expression: string): Promise<number> =>
        Number((await prometheus.query(expression))[0]?.value[1]);
      await until(
        () => valueOf('owlclaw_calls_total{tool="code_run",outcome="failed"}'),
        (value) => value === 1,
      );
      expect(await valueOf("owlclaw_cost_units_total")).toBe(2);
      expect(await valueOf("sum(owlclaw_governance_refusals_total)")).toBe(1);
      expect(await valueOf('sum(mcp_server_operation_duration_seconds_count{error_type="tool_error"})')).toBe(1);
      expect(await valueOf('sum(owlclaw_sandboxes{state!="pooled"})')).toBe(1);
      await server.stop();
    });
  },
);
