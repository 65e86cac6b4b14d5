import { chmodSync, mkdirSync, statSync } from "node:fs";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { runCli } from "./cli-process.ts";

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
): Promise<{ code: number | null; checks: Check[]; err: string }> {
  const { code, out, err } = await runCli(["mcp-server", "doctor", "--json", ...args], {
    cwd,
    env: { SANDBOX_ROOT: path.join(cwd, "data") },
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
