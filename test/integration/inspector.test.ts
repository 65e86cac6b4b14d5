import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { environment, type HttpServer, startHttp, stdioCommand } from "./harness.ts";
import type { Unchecked } from "./wire-messages.ts";

const RUNNER = path.resolve(import.meta.dirname, "../conformance/runner/node_modules");
const NODE_22 = path.join(RUNNER, `node-linux-${process.arch}/bin/node`);
const INSPECTOR = path.join(RUNNER, "@modelcontextprotocol/inspector/clients/launcher/build/index.js");

let server: HttpServer;
const home = mkdtempSync(path.join(tmpdir(), "owlclaw-inspector-"));

beforeAll(async () => {
  server = await startHttp();
});

afterAll(async () => {
  await server.stop();
  rmSync(home, { recursive: true, force: true });
});

/** The Inspector as its users run it, with a home folder of its own. */
function inspectText(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { ...environment(), HOME: home };
    execFile(
      NODE_22,
      [INSPECTOR, "--cli", ...args, "--format", "json", "--quiet"],
      { env },
      (error, stdout, stderr) => {
        if (stdout.trim() === "") reject(error ?? new Error(stderr));
        else resolve(stdout);
      },
    );
  });
}

async function inspect(args: readonly string[]): Promise<Record<string, Unchecked>> {
  return JSON.parse(await inspectText(args)) as Record<string, Unchecked>;
}

const targets: Record<string, () => string[]> = {
  http: () => ["--transport", "http", "--server-url", server.url],
  sse: () => ["--transport", "sse", "--server-url", `${server.origin}/mcp/sse`],
  stdio: () => {
    const { command, args } = stdioCommand();
    const file = path.join(home, "mcp.json");
    writeFileSync(file, JSON.stringify({ mcpServers: { owlclaw: { type: "stdio", command, args } } }));
    return ["--config", file, "--server", "owlclaw"];
  },
};

describe.each([
  ["http", "legacy"],
  ["http", "modern"],
  ["stdio", "legacy"],
  ["stdio", "modern"],
  ["sse", "legacy"],
])("the Inspector's CLI over %s, %s era", (transport, era) => {
  const run = (...args: string[]): Promise<Record<string, Unchecked>> =>
    inspect([...(targets[transport]?.() ?? []), "--protocol-era", era, ...args]);

  test("lists tools with portable schemas", async () => {
    const { tools } = resultOf(await run("--method", "tools/list", "--strict"));
    expect(tools.map(({ name }: { name: string }) => name)).toContain("echo");
  });

  test("calls a tool, reads a resource and gets a prompt", async () => {
    const called = resultOf(await run("--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "b=3"));
    expect(called).toMatchObject({ structuredContent: { sum: 5 } });
    const read = resultOf(await run("--method", "resources/read", "--uri", "fixture://greeting"));
    expect(read["contents"]).toMatchObject([{ text: "hello" }]);
    const got = resultOf(await run("--method", "prompts/get", "--prompt-name", "review", "--prompt-args", "code=1+1"));
    expect(got["messages"]).toMatchObject([{ content: { text: "Review this code: 1+1" } }]);
  }, 120_000);
});

describe("the Inspector's CLI, with the shop of the examples", () => {
  const shop = path.resolve(import.meta.dirname, "../../examples/shop");
  let shopServer: HttpServer;

  beforeAll(async () => {
    const handlers = { paths: [path.join(shop, "handlers/*.ts"), path.join(shop, "handlers/*.py")] };
    shopServer = await startHttp({ config: { handlers, skills: { dir: path.join(shop, "skills") } } });
  });

  afterAll(() => shopServer.stop());

  const run = (...args: string[]): Promise<string> =>
    inspectText(["--transport", "http", "--server-url", shopServer.url, "--protocol-era", "modern", ...args]);

  test("finds every file of every skill to be what skills/list promises", async () => {
    const lines = (await run("--method", "skills/list", "--verify")).trim().split("\n");
    const found = lines.map((line) => JSON.parse(line) as Record<string, Unchecked>);
    expect(found.map(({ name, outcome, ok }) => ({ name, outcome, ok }))).toEqual(
      ["order-status", "refund", "tone-of-voice"].map((name) => ({ name, outcome: "verified", ok: true })),
    );
    expect(found.flatMap(({ files }) => files.map(({ status }: { status: string }) => status))).toEqual(
      Array.from({ length: 6 }, () => "verified"),
    );
  });

  test("finds nothing unportable in schemas that were made of types", async () => {
    const { tools } = resultOf(
      JSON.parse(await run("--method", "tools/list", "--strict")) as Record<string, Unchecked>,
    );
    expect(tools.map(({ name }: { name: string }) => name)).toContain("order_refund");
  });
});

function resultOf(output: Record<string, Unchecked>): Record<string, Unchecked> {
  return output["result"] ?? output;
}
