import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { runCli } from "../integration/cli-process.ts";
import { call, headersOf, newFolder, rpc, SECRET, token, writeFile } from "../integration/governance-lab.ts";
import { type HttpServer, startHttp, until } from "../integration/harness.ts";
import { modern, postJson } from "../integration/http-client.ts";
import { TASKS_EXTENSION } from "../integration/wire-messages.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";

/** What operators do, and what others try, beside calls: nothing of it goes without a row. */
let server: HttpServer;
let mallory: { readonly token: string };
let root: { readonly token: string };
const data = newFolder();
const handlers = newFolder();
const policyFile = writeFile("trail.yaml", "{}");

const HANDLER =
  'import { defineHandler } from "owlclaw";\nexport default defineHandler({ name: "job", description: "WORD", run: () => "ran" });\n';

function replace(file: string, text: string): void {
  writeFileSync(`${file}.next`, text);
  renameSync(`${file}.next`, file);
}

beforeAll(async () => {
  writeFileSync(join(handlers, "job.ts"), HANDLER);
  server = await startHttp({
    config: {
      sandbox: { root: data, pool: { size: 0 } },
      handlers: { paths: [handlers] },
      governance: { policyFile },
      auth: { enabled: true, jwt: { secret: SECRET } },
    },
  });
  mallory = { token: await token("mallory") };
  root = { token: await token("root", { scope: "owlclaw:admin" }) };
});

afterAll(() => server.stop());

interface Trace {
  readonly principal: string;
  readonly transport: string;
  readonly outcome: string;
  readonly args: unknown;
}

async function rowsOf(name: string): Promise<Trace[]> {
  const reader = await openReader({ config: ledgerConfig(), dataFolder: data });
  const rows = await reader.list({ name }, { limit: 100, order: "oldest" });
  await reader.close();
  return rows.map(({ principal, transport, outcome, args }) => ({
    principal,
    transport,
    outcome,
    args: JSON.parse(args ?? "null"),
  }));
}

function rowsSoon(name: string, count: number): Promise<Trace[]> {
  return until(
    () => rowsOf(name),
    ({ length }) => length >= count,
  );
}

const get = (path: string, as: { readonly token: string }): Promise<Response> =>
  fetch(`${server.origin}${path}`, { headers: headersOf(as) });

async function newSandbox(): Promise<string> {
  expect((await call(server.url, "sandbox_create", {}, mallory)).body.error).toBeUndefined();
  const answer = await get("/api/sandboxes", root);
  const { sandboxes } = (await answer.json()) as { readonly sandboxes: readonly { readonly name: string }[] };
  return sandboxes[0]?.name ?? "";
}

describe("a sandbox that an operator destroys", () => {
  test("over HTTP has a row", async () => {
    const name = await newSandbox();
    const answer = await fetch(`${server.origin}/api/sandboxes/${name}`, {
      method: "DELETE",
      headers: headersOf(root),
    });
    expect(answer.status).toBe(204);
    const args = { sandbox: name };
    expect(await rowsOf("operator.destroy")).toEqual([{ principal: "root", transport: "http", outcome: "ok", args }]);
  });

  test("on the command line has a row", async () => {
    const name = await newSandbox();
    const config = writeFile("trail-cli.yaml", { sandbox: { root: data } });
    expect(await runCli(["mcp-server", "sandboxes", "destroy", name, "--config", config])).toMatchObject({ code: 0 });
    const [, row] = await rowsOf("operator.destroy");
    expect(row).toMatchObject({
      principal: expect.stringMatching(/^local:/),
      transport: "local",
      args: { sandbox: name },
    });
  });
});

describe("the ledger", () => {
  test("has a row of who reads it, one a minute, and of each export and verification", async () => {
    for (const path of ["/api/ledger?client=mallory", "/api/ledger", "/api/ledger/1"]) await get(path, root);
    expect(await rowsOf("operator.ledger_read")).toMatchObject([
      { principal: "root", args: { path: "/api/ledger", client: "mallory" } },
    ]);
    for (const path of ["export?format=csv", "export", "verify"]) await (await get(`/api/ledger/${path}`, root)).text();
    expect(await rowsOf("operator.ledger_export")).toHaveLength(2);
    expect(await rowsOf("operator.ledger_verify")).toHaveLength(1);
  });
});

describe("the dashboard", () => {
  const login = (as: { readonly token: string }): Promise<Response> =>
    fetch(`${server.origin}/dashboard/api/login`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: server.origin },
      body: JSON.stringify({ token: as.token }),
    });

  test("has rows of who came, who left, and who was not let in", async () => {
    expect((await login(mallory)).status).toBe(403);
    const opened = await login(root);
    expect(opened.status).toBe(200);
    const { csrf } = (await opened.json()) as { readonly csrf: string };
    const cookie = opened.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    const session = { cookie, "x-owlclaw-csrf": csrf, origin: server.origin };
    await fetch(`${server.origin}/dashboard/api/logout`, { method: "POST", headers: session });
    expect(await rowsSoon("operator.login", 2)).toMatchObject([
      { principal: "mallory", outcome: "refused" },
      { principal: "root", outcome: "ok", args: { by: "token" } },
    ]);
    expect(await rowsSoon("operator.logout", 1)).toMatchObject([{ principal: "root" }]);
  });
});

describe("what is not the caller's", () => {
  test("has a row when it is for operators", async () => {
    for (const path of ["/api/ledger", "/api/sandboxes", "/api/approvals", "/api/stats?client=ada"])
      expect((await get(path, mallory)).status).toBe(403);
    expect((await rowsSoon("request.refused", 4)).slice(0, 4)).toMatchObject(
      ["/api/ledger", "/api/sandboxes", "/api/approvals", "/api/stats"].map((path) => ({
        principal: "mallory",
        outcome: "refused",
        args: { method: "GET", path },
      })),
    );
  });

  test("has a row when it is a session, and the row does not hold its id", async () => {
    const initialize = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } };
    const opened = await rpc(server.url, "initialize", initialize, root);
    const id = String(opened.headers.get("mcp-session-id"));
    const stolen = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    const answer = await postJson(server.url, stolen, { ...headersOf(mallory), "mcp-session-id": id });
    expect(answer.status).toBe(404);
    const rows = await until(
      async () => (await rowsOf("request.refused")).filter(({ args }) => JSON.stringify(args).includes('"/mcp"')),
      ({ length }) => length > 0,
    );
    expect(rows).toMatchObject([{ principal: "mallory", args: { method: "POST", path: "/mcp" } }]);
    expect(JSON.stringify(rows)).not.toContain(id);
  });

  test.each(["tasks/get", "tasks/cancel"])("has a row when it is a task: %s", async (method) => {
    const capabilities = { extensions: { [TASKS_EXTENSION]: {} } };
    const options = { capabilities, headers: headersOf(mallory) };
    expect((await modern(server.url, method, { taskId: "guessed" }, options)).body.error).toBeDefined();
    expect(await rowsOf(method)).toMatchObject([
      { principal: "mallory", outcome: "refused", args: { task_id: "guessed" } },
    ]);
  });
});

describe("what changes while the server runs", () => {
  test("has a row: another policy, with its revision and the one before", async () => {
    replace(policyFile, JSON.stringify({ defaults: { callsPerMinute: 599 } }));
    const [row] = await rowsSoon("policy.change", 1);
    expect(row).toMatchObject({
      principal: "owlclaw",
      args: { revision: expect.any(String), replaced: expect.any(String) },
    });
  });

  test("has a row: other handlers, with their files", async () => {
    const file = join(handlers, "job.ts");
    replace(file, HANDLER.replace("WORD", "Another"));
    const [row] = await rowsSoon("handler.change", 1);
    expect(row).toMatchObject({ principal: "owlclaw", args: { files: [file] } });
  });
});
