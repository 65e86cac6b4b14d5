import { readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { METRICS, type MetricFacts } from "../../src/telemetry/metrics/catalogue.ts";
import { until } from "../integration/harness.ts";
import { checkMetrics, type PrometheusService, startPrometheus } from "../services/prometheus.ts";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";

const ALL: (MetricFacts & { readonly name: string })[] = Object.values(METRICS);

/** A window that Grafana would choose stands as a variable in the queries. */
function dashboardQueries(): readonly string[] {
  const text = readFileSync(new URL("../../deploy/grafana/owlclaw.json", import.meta.url), "utf8");
  const { panels } = JSON.parse(text) as { panels: { targets: { expr: string }[] }[] };
  return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr.replaceAll("$__rate_interval", "1m")));
}

/** A client that comes, shakes hands and goes. */
async function endSession(url: URL): Promise<void> {
  const clientInfo = { name: "visitor", version: "1" };
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  const opened = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
  });
  await opened.text();
  const headers = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
  expect((await fetch(url, { method: "DELETE", headers })).ok).toBe(true);
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

test("[004-R11.6] [004-R11.7] a real Prometheus scrapes the server and answers for every documented metric and every query of the dashboard", async () => {
  const server = new Server(makePlace(), {
    // This Prometheus is a user of its own.
    http: { host: "127.0.0.1", port: 0, allowOtherUsers: true },
    sandbox: { pool: { size: 1 } },
    governance: { defaults: { hidden: ["file_search"], monthlyBudget: 8 }, tools: { file_write: { cost: 2 } } },
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
  await endSession(url);
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
  expect(await valueOf('owlclaw_budget_used_ratio{rule="defaults.monthlyBudget"}')).toBe(0.25);
  const conventional = 'mcp_method_name="tools/call",gen_ai_tool_name="code_run",mcp_protocol_version="2025-11-25"';
  expect(await valueOf(`mcp_server_operation_duration_seconds_count{${conventional},network_transport="tcp"}`)).toBe(1);
  expect(await prometheus.query('mcp_server_operation_duration_seconds_count{network_transport!="tcp"}')).toEqual([]);
  const session = 'mcp_protocol_version="2025-06-18",network_transport="tcp"';
  expect(await valueOf(`mcp_server_session_duration_seconds_count{${session}}`)).toBe(1);
  expect(await valueOf("sum(owlclaw_sandbox_first_result_duration_seconds_count)")).toBe(1);
  expect(await valueOf('sum(owlclaw_sandboxes{state!="pooled"})')).toBe(1);
  await server.stop();
});
