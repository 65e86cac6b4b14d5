import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, describe, expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import type { LedgerRow } from "../../src/governance/ledger/row.ts";
import { openInside } from "../escape/sandbox-lab.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";
import { runCli } from "../integration/cli-process.ts";
import { NETWORK_MISSING } from "../setup/mandatory.ts";
import { call, connectHttp, makePlace, type Place, Server, writeConfig } from "./sandbox-client.ts";
import { connectInNetwork } from "./sandbox-network-world.ts";

const clients: Client[] = [];
afterAll(async () => {
  for (const client of clients) await client.close();
});

async function rowsOf({ dataFolder }: Place): Promise<readonly LedgerRow[]> {
  const reader = await openReader({ config: ledgerConfig(), dataFolder });
  const rows = await reader.list({}, { limit: 200, order: "oldest" });
  await reader.close();
  return rows;
}

describe("files over GET and PUT", () => {
  const defaults = { callsPerMinute: 100, concurrency: 10 };

  test("[004-R8.1] [004-R8.6] are denied with file_read and file_write, counted, and in the ledger", async () => {
    const place = makePlace();
    const tools = { file_read: { callsPerMinute: 2 } };
    const server = new Server(place, { governance: { defaults: { ...defaults, deny: ["file_write"] }, tools } });
    const url = await server.url();
    const client = await connectHttp(url);
    const created = await call(client, "sandbox_create");
    const id = String(created.structuredContent?.["session_id"]);
    const file = `${new URL(url).origin}/api/sandboxes/${id}/files/note.txt`;
    await call(client, "shell_exec", { session_id: id, command: "echo hello > note.txt" });
    const denied = await fetch(file, { method: "PUT", body: "mine" });
    expect([denied.status, await denied.json()]).toMatchObject([
      403,
      { error: { data: { kind: "governance_denied" } } },
    ]);
    expect(await (await fetch(file)).text()).toBe("hello\n");
    const last = await fetch(file);
    expect([last.status, last.headers.get("ratelimit")]).toEqual([200, expect.stringMatching(/^"minute";r=0;t=\d+/)]);
    const limited = await fetch(file);
    expect(limited.headers.get("ratelimit-policy")).toBe('"minute";q=2;w=60');
    expect([limited.status, Number(limited.headers.get("retry-after")) > 0]).toEqual([429, true]);
    const viaTool = await call(client, "file_read", { session_id: id, path: "note.txt" }).catch(String);
    expect(JSON.stringify(viaTool)).toContain("tools.file_read.callsPerMinute");
    await server.stop();
    const rows = (await rowsOf(place)).filter(({ name }) => name === "file_read" || name === "file_write");
    expect(rows.map((row) => [row.called_as, row.outcome, row.rule])).toEqual([
      ["PUT /api/sandboxes", "refused", "defaults.deny"],
      ["GET /api/sandboxes", "ok", "default"],
      ["GET /api/sandboxes", "ok", "default"],
      ["GET /api/sandboxes", "refused", "tools.file_read.callsPerMinute"],
      // The tool's refusal by the same rule is counted in one row with the first.
      ["GET /api/sandboxes", "refused", "tools.file_read.callsPerMinute"],
    ]);
  });
});

test("a replay of the policy in force changes nothing, whatever the ledger leaves out of ids", async () => {
  const place = makePlace();
  const rules = [
    { id: "private", when: 'tool == "file_list" && args.path.startsWith("private")', effect: "deny" },
    { id: "secret", when: 'tool == "file_read" && args.path.startsWith("secret")', effect: "deny" },
  ];
  const settings = { governance: { rules } };
  const server = new Server(place, settings);
  const url = await server.url();
  const client = await connectHttp(url);
  const id = String((await call(client, "sandbox_create")).structuredContent?.["session_id"]);
  const files = `${new URL(url).origin}/api/sandboxes/${id}/files`;
  expect((await fetch(`${files}/note.txt`, { method: "PUT", body: "hello" })).status).toBe(201);
  expect((await fetch(`${files}/note.txt`)).status).toBe(200);
  expect(await call(client, "file_list", { session_id: id })).toMatchObject({ structuredContent: { path: "." } });
  await expect(call(client, "file_list", { session_id: id, path: "private" })).rejects.toThrow("refuses");
  await client.readResource({ uri: `sandbox://${id}/note.txt` });
  await expect(client.readResource({ uri: `sandbox://${id}/secret.txt` })).rejects.toThrow("refuses");
  await server.stop();
  const config = writeConfig(place, settings);
  const policy = join(place.folder, "policy.yaml");
  writeFileSync(policy, JSON.stringify({ rules }));
  const run = (...argv: string[]) =>
    runCli(["mcp-server", "policy", ...argv, "--config", config], { env: { MCP_SERVER_SANDBOX_ENABLED: "true" } });
  const replayed = JSON.parse((await run("replay", policy, "--json")).out);
  expect(replayed).toMatchObject({ replayed: 7, changes: [], unknown: [] });
  const explained = await run("explain", "--client", "anonymous", "--tool", "file_list", "{}");
  expect(explained.out).toMatch(/^allow {2}file_list\n/);
});

/** With one of its signs written otherwise: a URI with it opens the sandbox all the same. */
function percentEncoded(id: string, at: number): string {
  return `${id.slice(0, at)}%${id.charCodeAt(at).toString(16)}${id.slice(at + 1)}`;
}

test("a file that is refused as a resource is refused under every URI that would read it", async () => {
  const place = makePlace();
  const server = new Server(place, { governance: { defaults: { deny: ["sandbox://*/secret.txt"] } } });
  const client = await connectHttp(await server.url());
  const id = String((await call(client, "sandbox_create")).structuredContent?.["session_id"]);
  await call(client, "shell_exec", { session_id: id, command: "mkdir x && echo hello | tee open.txt > secret.txt" });
  const read = (uri: string): Promise<string> =>
    client.readResource({ uri }).then(
      ({ contents }) => JSON.stringify(contents),
      (error: unknown) => String(error),
    );
  const urisOf = (name: string): readonly string[] => [
    `sandbox://${id}/${name}`,
    `sandbox://${percentEncoded(id, 3)}/${percentEncoded(name, 0)}`,
    `sandbox://${id}/./x/..//${name}`,
    `sandbox://${id}/nowhere/%2e%2e%2F${name}`,
    `sandbox://${id}/../workspace/${name}`,
    `sandbox://${id}//workspace/${name}`,
    `sandbox://${id}/${name}/`,
    `sandbox://${id}/${name}?offset=0`,
  ];
  for (const uri of urisOf("open.txt")) expect([uri, await read(uri)]).toEqual([uri, expect.stringContaining("hello")]);
  for (const uri of urisOf("secret.txt"))
    expect([uri, await read(uri)]).toEqual([uri, expect.stringContaining("the policy refuses the resource")]);
  await client.close();
  await server.stop();
});

test("neither a column of the ledger nor a line of the log holds an id that opens a sandbox, whatever was done with it", async () => {
  const place = makePlace();
  const server = new Server(place, { logging: { level: "debug" } });
  const url = await server.url();
  const client = await connectHttp(url);
  const id = String((await call(client, "sandbox_create")).structuredContent?.["session_id"]);
  const file = `${new URL(url).origin}/api/sandboxes/${id}/files/note.txt`;
  await call(client, "shell_exec", { session_id: id, command: `echo ${id} | tee note.txt` });
  await call(client, "file_read", { session_id: id, path: "note.txt" });
  await call(client, "code_run", { session_id: id, code: `print("${id}")` });
  await call(client, "code_run", { code: `print("${id}")` });
  await call(client, "sandbox_list");
  await call(client, "sandbox_list", { session_id: id });
  await fetch(file);
  await client.readResource({ uri: `sandbox://${id}/note.txt` });
  const written = [percentEncoded(id, 0), percentEncoded(id, 20)];
  for (const other of written) {
    await client.readResource({ uri: `sandbox://${other}/note.txt` });
    await expect(client.readResource({ uri: `sandbox://${other}/missing` })).rejects.toThrow("missing");
    await client.subscribeResource({ uri: `sandbox://${other}/note.txt` });
  }
  await call(client, "file_read", { session_id: id, path: "missing" });
  await call(client, "sandbox_destroy", { session_id: id });
  await server.stop();
  const rows = await rowsOf(place);
  expect(rows.filter(({ kind }) => kind === "tool" || kind === "resource").length).toBeGreaterThanOrEqual(9);
  for (const part of [id.slice(0, 20), id.slice(21)]) {
    expect(JSON.stringify(rows)).not.toContain(part);
    expect(server.log.filter((line) => JSON.stringify(line).includes(part))).toEqual([]);
  }
  expect(new Set(server.log.map(({ message }) => message))).toContain("answer");
  const sandboxes = new Set(rows.flatMap(({ sandbox }) => (sandbox === null ? [] : [sandbox])));
  expect([...sandboxes]).toEqual([expect.stringMatching(/^[0-9a-f]{16}$/)]);
});

test("what a sandbox moves over its network is paid by the call in whose time it moved", async (context) => {
  if (NETWORK_MISSING !== undefined) context.skip(NETWORK_MISSING);
  const place = makePlace();
  // A unit a byte, so that the cost is what was moved.
  const tools = { shell_exec: { cost: { perEgressMb: 1_000_000 }, maxCost: 1_000_000 } };
  const governance = { defaults: { callsPerMinute: 1000, concurrency: 10, monthlyBudget: 100_000_000 }, tools };
  const client = await connectInNetwork(place, { allow: ["good.test"], hasCable: true, settings: { governance } });
  clients.push(client);
  const inside = await openInside(client);
  await inside.call("shell_exec", { command: "true" });
  await inside.call("shell_exec", { command: "curl -sS http://good.test/hello.txt" });
  await inside.call("shell_exec", { command: "echo quiet" });
  const costs = (await rowsOf(place))
    .filter(({ name }) => name === "shell_exec")
    .map(({ cost_micros: micros }) => micros / 1e6);
  expect(costs).toEqual([0, expect.any(Number), 0]);
  // The answer of 18 bytes with its headers, and the question.
  expect(costs[1]).toBeGreaterThan(18);
  expect(costs[1]).toBeLessThan(5000);
});
