import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { runCli, spawnCli, type CliOptions } from "./cli-process.ts";

const API = new URL("../../dist/index.js", import.meta.url).pathname;

const HANDLERS = `
import { defineHandler, defineResource } from ${JSON.stringify(API)};
export const greet = defineHandler({
  name: "greet",
  description: "Greets somebody. ${"A long description that no terminal has room for. ".repeat(5)}",
  input: { type: "object", properties: { name: { type: "string" } }, required: ["name"], additionalProperties: false },
  run: ({ name }) => ({ content: [{ type: "text", text: "Hello, " + name + "!" }] }),
});
export const fail = defineHandler({
  name: "fail",
  description: "Fails.",
  run: () => ({ content: [{ type: "text", text: "it broke" }], isError: true }),
});
export const motd = defineResource({ uri: "notes://motd", name: "motd", description: "Message of the day.", mimeType: "text/plain", read: () => "hi" });
// A handler that leaves a timer behind must not keep a command from ending.
setInterval(() => {}, 1000);
`;

function folderWithHandlers(): CliOptions & { cwd: string } {
  const cwd = temporaryFolder({ "handlers.ts": HANDLERS, "mcp-server.yaml": "handlers: { paths: [handlers.ts] }\n" });
  return { cwd, env: { SANDBOX_ROOT: cwd } };
}

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

/** The first log line with this message. */
async function logLine(stderr: NodeJS.ReadableStream, message: string): Promise<Record<string, unknown>> {
  for await (const line of createInterface({ input: stderr })) {
    const entry: unknown = line.startsWith("{") ? JSON.parse(line) : undefined;
    if (typeof entry === "object" && entry !== null && "message" in entry && entry.message === message)
      return { ...entry };
  }
  throw new Error(`stderr ended without "${message}"`);
}

describe("start", () => {
  test("[004-R12.1] [004-R10.5] without flags serves stdio: only JSON-RPC on stdout, the summary on stderr", async () => {
    const child = spawnCli(["mcp-server", "start"], folderWithHandlers());
    const summary = logLine(child.stderr, "server started");
    child.stdin.write(`${JSON.stringify(INITIALIZE)}\n`);
    const lines: string[] = [];
    const reader = createInterface({ input: child.stdout });
    reader.on("line", (line) => {
      lines.push(line);
      child.stdin.end();
    });
    const [code] = await once(child, "exit");
    expect(code).toBe(0);
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({ jsonrpc: "2.0", id: 1, result: expect.anything() }),
    ]);
    expect(await summary).toMatchObject({
      transport: "stdio",
      mode: "production",
      configFile: expect.stringContaining("mcp-server.yaml"),
    });
  });

  test("[004-R12.2] [004-R12.3] [004-R12.10] [004-R10.6] --transport http --port serves HTTP there and says so", async () => {
    const child = spawnCli(["mcp-server", "start", "--transport", "http", "--port", "0"], folderWithHandlers());
    const { address } = await logLine(child.stderr, "server started");
    expect(address).toMatch(/^http:\/\/(localhost|127\.0\.0\.1|\[::1\]):\d+/);
    const response = await fetch(new URL("/health", String(address)));
    expect(response.status).toBe(200);
    await response.text();
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  test("[000-R6.1] [000-R6.2] [004-R10.2] MCP_SERVER_HOST and MCP_SERVER_PORT decide where it listens", async () => {
    const { cwd, env } = folderWithHandlers();
    const variables = { ...env, MCP_SERVER_TRANSPORT: "http", MCP_SERVER_HOST: "127.0.0.1", MCP_SERVER_PORT: "0" };
    const child = spawnCli(["mcp-server", "start"], { cwd, env: variables });
    const { address } = await logLine(child.stderr, "server started");
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+/);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  test("[000-R6.3] MCP_ENABLE_CORS lets pages from loopback read answers, and nobody is let in without it", async () => {
    const { cwd, env } = folderWithHandlers();
    const allowed: (string | null)[] = [];
    for (const MCP_ENABLE_CORS of ["true", "false"]) {
      const child = spawnCli(["mcp-server", "start", "--transport", "http", "--port", "0"], {
        cwd,
        env: { ...env, MCP_ENABLE_CORS },
      });
      const { address } = await logLine(child.stderr, "server started");
      const response = await fetch(String(address), {
        method: "OPTIONS",
        headers: { origin: "http://localhost:5173", "access-control-request-method": "POST" },
      });
      await response.text();
      allowed.push(response.headers.get("access-control-allow-origin"));
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    expect(allowed).toEqual(["http://localhost:5173", null]);
  });

  test("a port in use ends the start with path, value, reason and fix", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const bound = taken.address();
    const port = typeof bound === "object" && bound !== null ? bound.port : 0;
    const { code, out, err } = await runCli(
      ["mcp-server", "start", "--transport", "http", "--host", "127.0.0.1", "--port", String(port)],
      folderWithHandlers(),
    );
    taken.close();
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(`http.port = ${port}  (from --port)`);
    expect(err).toMatch(/reason: .*in use/);
    expect(err).toMatch(/fix: .*another port/);
  });
});

describe("tools and resources without a client", () => {
  test("[004-R12.6] tools list prints a table, and JSON on request", async () => {
    const options = folderWithHandlers();
    const { code, out, err } = await runCli(["mcp-server", "tools", "list"], options);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^NAME +VERSION +SCOPE +DESCRIPTION\n/);
    expect(out).toMatch(/^greet +\S+ .*Greets somebody\./m);
    const json = await runCli(["mcp-server", "tools", "list", "--json"], options);
    expect(JSON.parse(json.out).tools).toEqual(
      expect.arrayContaining([expect.objectContaining({ name: "greet", description: expect.any(String) })]),
    );
  });

  test("[004-R12.7] resources list prints a table, and JSON on request", async () => {
    const options = folderWithHandlers();
    expect(await runCli(["mcp-server", "resources", "list"], options)).toMatchObject({
      code: 0,
      err: "",
      out: expect.stringMatching(/^notes:\/\/motd +motd +text\/plain +Message of the day\.$/m),
    });
    const json = await runCli(["mcp-server", "resources", "list", "--json"], options);
    expect(JSON.parse(json.out).resources).toEqual([expect.objectContaining({ uri: "notes://motd", name: "motd" })]);
  });

  test("tools call runs a tool with arguments from the command line or stdin", async () => {
    const options = folderWithHandlers();
    const argv = ["mcp-server", "tools", "call", "greet"];
    expect(await runCli([...argv, '{"name": "Ada"}'], options)).toEqual({ code: 0, out: "Hello, Ada!\n", err: "" });
    const json = await runCli([...argv, "-", "--json"], { ...options, input: '{"name": "Bob"}' });
    expect(JSON.parse(json.out)).toMatchObject({ content: [{ type: "text", text: "Hello, Bob!" }] });
  });

  test("tools call ends with 1 when the tool fails, is unknown or gets wrong arguments", async () => {
    const options = folderWithHandlers();
    expect(await runCli(["mcp-server", "tools", "call", "fail"], options)).toMatchObject({
      code: 1,
      out: "it broke\n",
    });
    expect(await runCli(["mcp-server", "tools", "call", "gret"], options)).toMatchObject({
      code: 1,
      err: expect.stringContaining("gret"),
    });
    expect(await runCli(["mcp-server", "tools", "call", "greet", '{"nam": 1}'], options)).toMatchObject({ code: 1 });
  });
});
