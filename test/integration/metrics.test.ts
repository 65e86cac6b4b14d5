import { expect, test } from "vitest";
import { Metrics } from "../../src/telemetry/metrics/metrics.ts";
import { startHttp, writeConfig } from "./harness.ts";
import { runCli } from "./cli-process.ts";

const SECRET = "0123456789abcdef0123456789abcdef";

async function statusOf(url: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { headers });
  await response.text();
  return response.status;
}

async function tokenFor(config: Record<string, unknown>, ...scope: string[]): Promise<string> {
  const args = ["mcp-server", "token", "create", "--sub", "ada", ...scope, "--config", writeConfig({ config })];
  return (await runCli(args)).out.trim();
}

test("on loopback without auth metrics are open, but not to whoever comes through a proxy", async () => {
  const server = await startHttp();
  expect(await statusOf(`${server.origin}/metrics`)).toBe(200);
  for (const name of ["x-forwarded-for", "forwarded", "via"])
    expect(await statusOf(`${server.origin}/metrics`, { [name]: "for=192.0.2.1" })).toBe(403);
  await server.stop();
});

test("with auth on only operators read metrics", async () => {
  const config = { auth: { enabled: true, jwt: { secret: SECRET } } };
  const server = await startHttp({ config });
  const [user, operator] = await Promise.all([tokenFor(config), tokenFor(config, "--scope", "owlclaw:admin")]);
  const read = (token: string) => statusOf(`${server.origin}/metrics`, { authorization: `Bearer ${token}` });
  expect(await statusOf(`${server.origin}/metrics`)).toBe(401);
  expect(await read(user)).toBe(403);
  expect(await read(operator)).toBe(200);
  await server.stop();
});

test("beyond loopback without auth nobody reads them on the main port; a listener of their own serves them alone", async () => {
  const server = await startHttp({
    config: { http: { host: "0.0.0.0", allowUnauthenticated: true }, telemetry: { metricsAddress: "127.0.0.1:0" } },
  });
  const { port } = new URL(server.url);
  const { url } = await server.logged("metrics");
  expect(await statusOf(`http://127.0.0.1:${port}/metrics`)).toBe(403);
  expect(await statusOf(String(url))).toBe(200);
  expect(await statusOf(new URL("/mcp", String(url)).href)).toBe(404);
  await server.stop();
});

test("an address that is in use ends the start and is named", async () => {
  const first = await startHttp({ config: { telemetry: { metricsAddress: "127.0.0.1:0" } } });
  const { host } = new URL(String((await first.logged("metrics"))["url"]));
  const config = writeConfig({ config: { telemetry: { metricsAddress: host } } });
  const { code, err } = await runCli(["mcp-server", "start", "--transport", "http", "--config", config]);
  expect(code).toBe(1);
  expect(err).toContain(`telemetry.metricsAddress: ${host} cannot be used (EADDRINUSE)`);
  await first.stop();
});

test("switched off, there are none", async () => {
  const server = await startHttp({ config: { telemetry: { metrics: false } } });
  expect(await statusOf(`${server.origin}/metrics`)).toBe(404);
  await server.stop();
});

test("names that callers invent make no series of their own", async () => {
  const server = await startHttp();
  for (let id = 0; id < 20; id += 1) {
    for (const message of [
      { method: "tools/call", params: { name: `invented_${id}`, arguments: {} } },
      { method: `invented/${id}`, params: {} },
    ])
      await fetch(server.url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id, ...message }),
      });
  }
  const text = await (await fetch(`${server.origin}/metrics`)).text();
  expect(text).not.toContain("invented");
  expect(text).toContain('owlclaw_calls_total{kind="tool",tool="unknown",outcome="failed"} 20');
  await server.stop();
});

test("the number of series has an end, and labels are written so that nothing breaks out of them", async () => {
  const metrics = new Metrics();
  metrics.refusals.add(['a"b\\c\nd'], 1);
  for (let rule = 0; rule < 2000; rule += 1) metrics.refusals.add([`rule-${rule}`], 1);
  const lines = (await metrics.text()).split("\n").filter((line) => line.startsWith("owlclaw_governance"));
  expect(lines).toContain(String.raw`owlclaw_governance_refusals_total{rule="a\"b\\c\nd"} 1`);
  expect(lines.length).toBeLessThanOrEqual(501);
  expect(lines).toContain('owlclaw_governance_refusals_total{rule="other"} 1501');
});
