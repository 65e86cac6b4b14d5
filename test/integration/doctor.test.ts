import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../services/free-port.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { runCli } from "./cli-process.ts";
import { BIN, startHttp } from "./harness.ts";

interface Check {
  readonly category: string;
  readonly name: string;
  readonly status: string;
  readonly message: string;
  readonly fix?: string;
}

async function doctor(
  args: readonly string[],
  cwd = temporaryFolder({}),
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number | null; checks: Check[]; err: string }> {
  const { code, out, err } = await runCli(["mcp-server", "doctor", "--json", ...args], {
    cwd,
    env: { SANDBOX_ROOT: path.join(cwd, "data"), ...env },
  });
  return { code, err, checks: JSON.parse(out) as Check[] };
}

const named = (checks: readonly Check[], name: string): Check | undefined =>
  checks.find((check) => check.name === name);

test("every check has category, name, status and message; the last one had a server answer over stdio", async () => {
  const { code, checks } = await doctor([]);
  expect(code).toBe(0);
  for (const check of checks)
    expect(check).toMatchObject({
      category: expect.any(String),
      name: expect.any(String),
      status: expect.stringMatching(/^(ok|warning)$/),
      message: expect.any(String),
    });
  expect(checks.at(-1)).toMatchObject({
    category: "whole way",
    status: "ok",
    message: expect.stringMatching(/lists its tools/),
  });
});

test("a busy port fails, with what to do, and the exit code says so", async () => {
  const busy = createServer().listen(0, "127.0.0.1");
  await once(busy, "listening");
  onTestFinished(() => void busy.close());
  const { port } = busy.address() as AddressInfo;
  const { code, checks } = await doctor(["--transport", "http", "--host", "127.0.0.1", "--port", String(port)]);
  expect(code).toBe(1);
  expect(named(checks, "port")).toMatchObject({
    status: "failed",
    message: expect.stringContaining("in use"),
    fix: expect.stringContaining("--port"),
  });
});

test("a busy ::1 fails for localhost, which stands for both addresses", async (context) => {
  const port = await freePort();
  const busy = createServer().listen(port, "::1");
  await once(busy, "listening").catch(() => context.skip("no IPv6 here"));
  onTestFinished(() => void busy.close());
  const { code, checks } = await doctor(["--transport", "http", "--port", String(port)]);
  expect(code).toBe(1);
  expect(named(checks, "port")).toMatchObject({ status: "failed", message: `[::1]:${port} is in use` });
});

test("the port of the server that runs is as it should be; that of another OwlClaw is told", async () => {
  const cwd = temporaryFolder({});
  const root = path.join(cwd, "data");
  const server = await startHttp({ config: { http: { host: "localhost" }, sandbox: { root, enabled: false } } });
  const { port } = new URL(server.origin);
  const own = await doctor(["--transport", "http", "--port", port], cwd);
  expect(named(own.checks, "port")).toMatchObject({
    status: "ok",
    message: `this server is listening on 127.0.0.1:${port}`,
  });
  expect(own.code).toBe(0);
  const other = await doctor(["--transport", "http", "--host", "127.0.0.1", "--port", port]);
  expect(named(other.checks, "port")).toMatchObject({
    status: "warning",
    message: expect.stringContaining("an OwlClaw server is listening"),
    fix: expect.stringContaining("--port"),
  });
  await server.stop();
}, 90_000);

test("what is wrong in the configuration is told with its fix, and the machine is looked at all the same", async () => {
  const { code, checks } = await doctor(
    [],
    temporaryFolder({ "mcp-server.yaml": "tools: { timeoutSeconds: soon }\n" }),
  );
  expect(code).toBe(1);
  expect(named(checks, "tools.timeoutSeconds")).toMatchObject({
    category: "configuration",
    status: "failed",
    fix: expect.any(String),
  });
  expect(named(checks, "node")).toMatchObject({ status: "ok" });
});

test("a server that cannot start fails the whole way, with the end of its log", async () => {
  const cwd = temporaryFolder({ "mcp-server.yaml": "governance: { policyFile: missing.yaml }\n" });
  const { code, checks } = await doctor([], cwd);
  expect(code).toBe(1);
  expect(checks.at(-1)).toMatchObject({
    category: "whole way",
    status: "failed",
    message: expect.stringMatching(/ended/),
  });
});

test("a clock that is behind what the server has recorded fails, with what to do", async () => {
  const cwd = temporaryFolder({});
  const data = path.join(cwd, "data");
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(path.join(data, "ledger.db"), "");
  // Whole seconds: not every file system keeps the rest.
  const later = new Date(Math.ceil(Date.now() / 1000) * 1000 + 7_200_000);
  utimesSync(path.join(data, "ledger.db"), later, later);
  const { code, checks } = await doctor([], cwd);
  expect(code).toBe(1);
  expect(named(checks, "clock")).toMatchObject({
    status: "failed",
    message: expect.stringContaining(`records were written at ${later.toISOString()}`),
    fix: expect.stringContaining("timedatectl"),
  });
});

test.each([
  ["no", "warning", "no time service has set it"],
  ["yes", "ok", "kept by a time service"],
])("a machine that says %s to a kept clock: %s", async (answer, status, message) => {
  // A stand-in: whether this machine's clock is kept is not for a test to change.
  const programs = temporaryFolder({});
  writeFileSync(path.join(programs, "timedatectl"), `#!/bin/sh\necho ${answer}\n`, { mode: 0o755 });
  const { checks } = await doctor([], temporaryFolder({}), { PATH: `${programs}:${process.env["PATH"]}` });
  expect(named(checks, "clock")).toMatchObject({ status, message: expect.stringContaining(message) });
});

test("an old Node is told which one is needed, before anything else is loaded", () => {
  // A stand-in: no Node here is that old. What a real one cannot load is behind the only import, which is not reached.
  const old = path.join(
    temporaryFolder({ "old.cjs": 'Object.defineProperty(process, "versions", { value: { node: "18.20.4" } });' }),
    "old.cjs",
  );
  const args = ["--require", old, BIN, "mcp-server", "doctor"];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
  expect(stderr).toMatch(/^owlclaw: Node 20\.19 or newer is needed; .* is 18\.20\.4\n$/);
  const loaded = [...readFileSync(BIN, "utf8").matchAll(/^import\b[^(]*?"([^"]+)"/gm)].map(([, name]) => name);
  expect(loaded).toEqual(["node:module", "node:process"]);
});

test("--fix closes a data folder that others can look into", async () => {
  const cwd = temporaryFolder({});
  mkdirSync(path.join(cwd, "data"));
  chmodSync(path.join(cwd, "data"), 0o755);
  expect(named((await doctor([], cwd)).checks, "data folder")).toMatchObject({ status: "warning" });
  const { checks, err } = await doctor(["--fix"], cwd);
  expect(named(checks, "data folder")).toMatchObject({ status: "ok" });
  expect(err).toContain("repaired:");
  expect(statSync(path.join(cwd, "data")).mode & 0o777).toBe(0o700);
});
