import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { ANONYMOUS } from "../../src/auth/principal.ts";
import { HealthEndpoint } from "../../src/transport/http/health-endpoint.ts";
import { startHttp } from "./harness.ts";

async function ask(origin: string, path = "/health"): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${origin}${path}`);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const CHECK = { status: "ok", latency_ms: expect.any(Number), message: expect.any(String) };

test("[004-R11.10] /health says how each dependency is, how long it took to answer and what that means", async () => {
  const server = await startHttp();
  expect(await ask(server.origin)).toEqual({
    status: 200,
    body: {
      status: "ok",
      version: expect.any(String),
      checks: { store: CHECK, ledger_loss: CHECK, limits: CHECK, disk: CHECK, ledger_verify: CHECK, paused: CHECK },
    },
  });
  expect(await ask(server.origin, "/health/live")).toMatchObject({ status: 200, body: { status: "ok" } });
  expect(await ask(server.origin, "/health/ready")).toMatchObject({ status: 200, body: { status: "ok" } });
  await server.stop();
});

test("a server that stops lives, and is not ready: load balancers send nobody any more", async () => {
  const health = { report: async () => ({ status: "ok", checks: {} }) as const };
  const endpoint = new HealthEndpoint({ health, version: "1", requests: { isDraining: true } });
  const server = createServer((request, response) => {
    const exchange = {
      request,
      response,
      principal: ANONYMOUS,
      label: undefined,
      traceId: "",
      release: () => undefined,
    };
    if (request.url === "/health/live") endpoint.live(exchange);
    else void (request.url === "/health/ready" ? endpoint.ready(exchange) : endpoint.all(exchange));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect(await ask(origin, "/health/live")).toMatchObject({ status: 200 });
  expect(await ask(origin, "/health/ready")).toMatchObject({ status: 503, body: { status: "draining" } });
  expect(await ask(origin)).toMatchObject({ status: 503, body: { status: "draining" } });
});
