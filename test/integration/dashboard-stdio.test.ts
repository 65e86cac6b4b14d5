import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { PageOperator } from "../escape/dashboard-lab.ts";
import { send } from "../escape/http-client.ts";
import { runCli } from "./cli-process.ts";
import { ServerProcess, stdioCommand } from "./harness.ts";
import { newFolder } from "./governance-lab.ts";

function start(root: string, flags: readonly string[]): ServerProcess {
  const { command, args, env } = stdioCommand({ config: { sandbox: { root, enabled: false } } });
  return new ServerProcess(spawn(command, [...args, ...flags], { env, stdio: ["pipe", "pipe", "pipe"] }));
}

test("start --dashboard serves the page beside stdio, on loopback and for a link that the command prints", async () => {
  const root = newFolder();
  const server = start(root, ["--dashboard"]);
  const { url } = await server.logged("dashboard");
  const { hostname, origin } = new URL(String(url));
  expect(hostname).toBe("127.0.0.1");
  const printed = await runCli(["mcp-server", "dashboard"], { env: { SANDBOX_ROOT: root } });
  expect(printed).toMatchObject({ code: 0, err: "It opens once, within 10 minutes.\n" });
  const link = printed.out.trim();
  const operator = await PageOperator.byLink(link);
  expect((await operator.get("now")).json).toMatchObject({ calls: [], approvals: [] });
  expect((await operator.post("tools/call", { name: "echo", arguments: { text: "hi" } })).json).toMatchObject({
    ok: true,
  });
  expect((await send(link)).status).toBe(403);
  for (const path of ["/mcp", "/api/ledger", "/health", "/metrics", "/"]) {
    expect((await send(`${origin}${path}`)).status).toBe(404);
  }
  expect(server.stderr.join("\n")).not.toContain(new URL(link).searchParams.get("key"));
  server.child.stdin?.end();
  await server.exitedWell();
});

test("without the flag a server on stdio opens no port, and the command says how to have one", async () => {
  const root = newFolder();
  const server = start(root, []);
  await server.logged("server started");
  const printed = await runCli(["mcp-server", "dashboard"], { env: { SANDBOX_ROOT: root } });
  expect(printed).toMatchObject({ code: 2, err: expect.stringContaining("--dashboard") });
  server.child.stdin?.end();
  await server.exitedWell();
});

test("a port that is taken keeps the server from starting, and the message names the setting", async () => {
  const root = newFolder();
  const first = start(root, ["--dashboard"]);
  const { port } = new URL(String((await first.logged("dashboard"))["url"]));
  const second = start(newFolder(), ["--dashboard", port]);
  expect((await second.exit()).code).not.toBe(0);
  expect(second.stderr.join("\n")).toContain("dashboard.port");
  first.child.stdin?.end();
  await first.exitedWell();
});
