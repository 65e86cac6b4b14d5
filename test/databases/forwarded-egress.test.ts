import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, expect, test } from "vitest";
import { POSTGRES_MISSING, startPostgres } from "../services/postgres.ts";
import { BIN, makePlace, type Place, type Settings, writeConfig } from "../e2e/sandbox-client.ts";
import { connectInNetwork } from "../e2e/sandbox-network-world.ts";

const ends: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const end of ends.toReversed()) await end();
});

/** Enters the network that a process is in. */
const ENTER = "/usr/bin/nsenter";

function inside(pid: number, ...command: string[]): string[] {
  return ["-t", String(pid), "--net", "--mount", ...command];
}

/** A second server in the network of the first, for other servers to call. */
async function startBeside(pid: number, place: Place, settings: Settings): Promise<string> {
  const config = writeConfig(place, settings);
  const args = inside(pid, process.execPath, BIN, "mcp-server", "start", "--transport", "http", "--config", config);
  const env = { PATH: process.env["PATH"] ?? "", HOME: place.folder, TMPDIR: place.folder };
  const server = spawn(ENTER, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  ends.push(async () => {
    server.kill("SIGTERM");
    if (server.exitCode === null && server.signalCode === null) await once(server, "exit");
  });
  const seen: string[] = [];
  for await (const line of createInterface({ input: server.stderr })) {
    seen.push(line);
    const url = line.includes('"listening"') ? /"url":"([^"]+)"/.exec(line)?.[1] : undefined;
    if (url === undefined) continue;
    server.stderr.resume();
    return url;
  }
  throw new Error(`the server did not start:\n${seen.join("\n")}`);
}

test("what a forwarded call moves over its sandbox's network is charged where it was governed, once", async (context) => {
  if (process.getuid?.() !== 0) context.skip("only root can make a network to test in");
  if (POSTGRES_MISSING !== undefined) context.skip(POSTGRES_MISSING);
  const postgres = await startPostgres();
  ends.push(() => postgres.stop());
  const [near, home] = [makePlace(), makePlace()];
  const shared = {
    store: { url: postgres.url },
    ledger: { keyFolder: join(near.folder, "keys") },
    cluster: { key: "the servers of these tests share this key of theirs" },
    // A unit a byte, so that the cost is what was moved.
    governance: {
      defaults: { callsPerMinute: 1000, concurrency: 10, monthlyBudget: 100_000_000 },
      tools: { shell_exec: { cost: { perEgressMb: 1_000_000 }, maxCost: 1_000_000 } },
    },
  };
  const client = await connectInNetwork(near, {
    allow: ["good.test"],
    hasCable: true,
    settings: { ...shared, stdio: { clientId: "anonymous" } },
  });
  ends.push(() => client.close());
  const { transport } = client;
  const pid = transport instanceof StdioClientTransport ? transport.pid : null;
  if (pid === null) throw new Error("the first server has no process");
  const url = await startBeside(pid, home, { ...shared, sandbox: { network: { allow: ["good.test"] } } });
  const create = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "sandbox_create", arguments: {} } };
  const curl = ["curl", "-sS", "-H", "content-type: application/json", "-d", JSON.stringify(create), url];
  const made = JSON.parse(execFileSync(ENTER, inside(pid, ...curl), { encoding: "utf8" }));
  const { session_id: sessionId } = made.result.structuredContent;
  const run = (command: string) =>
    client.callTool({ name: "shell_exec", arguments: { command, session_id: sessionId } });
  await run("true");
  const fetched = await run("curl -sS http://good.test/hello.txt");
  expect(fetched.structuredContent).toMatchObject({ stdout: "hello from outside" });
  await run("echo quiet");
  const costs = postgres
    .sql("SELECT transport || ' ' || cost_micros / 1000000 FROM ledger WHERE name = 'shell_exec' ORDER BY seq")
    .split("\n");
  expect(costs).toEqual(["stdio 0", expect.stringMatching(/^stdio \d+$/), "stdio 0"]);
  // The answer of 18 bytes with its headers, and the question.
  const paid = Number(costs[1]?.split(" ")[1]);
  expect(paid).toBeGreaterThan(18);
  expect(paid).toBeLessThan(5000);
  expect(Number(postgres.sql("SELECT sum(spent) / 1000000 FROM call_days"))).toBe(paid);
}, 120_000);
