import { expect, test } from "vitest";
import { call, connectHttp, makePlace, Server } from "./sandbox-client.ts";

/** No index is known for the preset, on no machine: so no sandbox can have its network, and none is started. */
const NO_INDEX = { PATH: "/nowhere", PIP_CONFIG_FILE: "/dev/null" };
const REASON = "network.allow: the preset pip finds no index in pip's configuration";

async function open(sandbox: Record<string, unknown>, env: Record<string, string> = {}) {
  const server = new Server(makePlace(), { sandbox }, env);
  const url = await server.url();
  const ask = async (path: string): Promise<[number, unknown]> => {
    const response = await fetch(new URL(path, url));
    return [response.status, await response.json()];
  };
  return { server, url, ask };
}

test("where no sandbox can run, /health is 503, the status says so, and the start and every call say why", async () => {
  const { server, url, ask } = await open({ network: { allow: ["pip"] } }, NO_INDEX);
  const message = "no sandbox can start: the log and `owlclaw mcp-server doctor` name the cause";
  const checks = { runtime: { status: "down", message } };
  expect(await ask("/health")).toMatchObject([503, { status: "unavailable", version: expect.any(String), checks }]);
  expect(await ask("/health/ready")).toMatchObject([503, { status: "unavailable" }]);
  expect(await ask("/health/live")).toMatchObject([200, { status: "ok" }]);
  expect(await ask("/mcp")).toMatchObject([200, { status: "degraded", checks }]);
  expect(await server.logged("server started")).toMatchObject({ sandboxes: `unavailable: ${REASON}` });
  const client = await connectHttp(url);
  await expect(call(client, "code_run", { code: "1" })).rejects.toThrow(REASON);
  await server.stop();
});

test("where sandboxes run, /health is 200 and says so; HEAD says the same without a body", async () => {
  const { server, url, ask } = await open({});
  const checks = { runtime: { status: "ok" }, guest: { status: "ok" } };
  expect(await ask("/health")).toMatchObject([200, { status: "ok", version: expect.any(String), checks }]);
  expect(await ask("/mcp")).toMatchObject([200, { status: "ok", checks }]);
  const head = await fetch(new URL("/health", url), { method: "HEAD" });
  expect([head.status, await head.text()]).toEqual([200, ""]);
  expect(await server.logged("server started")).toMatchObject({ sandboxes: "bubblewrap" });
  await server.stop();
});

test("where sandboxes are switched off, they are no part of the health", async () => {
  const { server, ask } = await open({ enabled: false });
  const [status, report] = await ask("/health");
  expect(status).toBe(200);
  expect(report).toMatchObject({ status: "ok", version: expect.any(String) });
  expect(report).not.toHaveProperty("checks.runtime");
  await server.stop();
});
