import type { Client } from "@modelcontextprotocol/client";
import { afterAll, describe, expect, test } from "vitest";
import { openReader } from "../../src/ledger/open-store.ts";
import type { LedgerRow } from "../../src/ledger/row.ts";
import { openInside } from "../escape/sandbox-lab.ts";
import { ledgerConfig } from "../unit/ledger/ledger-fixture.ts";
import { call, connectHttp, makePlace, type Place, Server } from "./sandbox-client.ts";
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
    expect((await fetch(file)).status).toBe(200);
    const limited = await fetch(file);
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

test("no column of the ledger holds an id that opens a sandbox, whatever was done with it", async () => {
  const place = makePlace();
  const server = new Server(place, {});
  const url = await server.url();
  const client = await connectHttp(url);
  const id = String((await call(client, "sandbox_create")).structuredContent?.["session_id"]);
  const file = `${new URL(url).origin}/api/sandboxes/${id}/files/note.txt`;
  await call(client, "shell_exec", { session_id: id, command: `echo ${id} | tee note.txt` });
  await call(client, "file_read", { session_id: id, path: "note.txt" });
  await call(client, "code_run", { session_id: id, code: `print("${id}")` });
  await call(client, "sandbox_list");
  await call(client, "sandbox_list", { session_id: id });
  await fetch(file);
  await client.readResource({ uri: `sandbox://${id}/note.txt` });
  await call(client, "file_read", { session_id: id, path: "missing" });
  await call(client, "sandbox_destroy", { session_id: id });
  await server.stop();
  const rows = await rowsOf(place);
  expect(rows.filter(({ kind }) => kind === "tool" || kind === "resource").length).toBeGreaterThanOrEqual(9);
  expect(JSON.stringify(rows)).not.toContain(id);
  const sandboxes = new Set(rows.flatMap(({ sandbox }) => (sandbox === null ? [] : [sandbox])));
  expect([...sandboxes]).toEqual([expect.stringMatching(/^[0-9a-f]{16}$/)]);
});

test("what a sandbox moves over its network is paid by the call in whose time it moved", async (context) => {
  if (process.getuid?.() !== 0) context.skip("only root can make a network to test in");
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
