import { cpSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { expect, test } from "vitest";
import { runCli } from "../integration/cli-process.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { type HttpServerProcess, startHttp } from "./server.ts";

interface Answer {
  readonly result?: unknown;
  readonly error?: { readonly data: { readonly kind: string } };
}

async function call(server: HttpServerProcess): Promise<Answer> {
  const params = { name: "echo", arguments: { text: "hello" } };
  const answer = await fetch(`${server.origin}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  });
  return (await answer.json()) as Answer;
}

function plant(server: Pick<HttpServerProcess, "folder">, sql: string): void {
  const database = new Database(join(server.folder, "data/ledger.db"));
  database.exec("PRAGMA busy_timeout = 5000");
  database.exec(sql);
  database.close();
}

const ledger = (server: Pick<HttpServerProcess, "folder">, ...args: string[]): ReturnType<typeof runCli> =>
  runCli(["mcp-server", "ledger", ...args], {
    cwd: temporaryFolder(),
    env: { SANDBOX_ROOT: join(server.folder, "data") },
  });

const COPIED =
  "SELECT -5, time, principal, label, transport, kind, name, called_as, args, result, outcome, error_kind, decision, rule, policy_revision, duration_us, 9000000, trace_id, sandbox, flags, count, hash FROM ledger WHERE kind = 'tool' LIMIT 1";

test("rows that are planted before the first are found by verify, and neither listed nor counted", async () => {
  const server = await startHttp();
  expect(await call(server)).toHaveProperty("result");
  const listed = (await ledger(server, "list", "--json")).out;
  const counted = (await ledger(server, "stats", "--json")).out;
  expect((await ledger(server, "verify")).code).toBe(0);
  plant(server, `INSERT INTO ledger ${COPIED}`);
  const { code, out, err } = await ledger(server, "verify");
  expect({ code, said: out + err }).toEqual({ code: 1, said: expect.stringContaining("stand before row 1") });
  expect((await ledger(server, "list", "--json")).out).toBe(listed);
  expect((await ledger(server, "stats", "--json")).out).toBe(counted);
  await server.stop();
});

const TRIGGERS = {
  "swallows rows":
    "CREATE TRIGGER quiet BEFORE INSERT ON ledger WHEN NEW.kind = 'tool' BEGIN SELECT RAISE(IGNORE); END",
  "removes rows":
    "CREATE TRIGGER quiet AFTER INSERT ON ledger WHEN NEW.kind = 'tool' BEGIN DELETE FROM ledger WHERE seq = NEW.seq; END",
};

test.each(Object.entries(TRIGGERS))("a trigger that %s fails the calls, and verify names it", async (_what, sql) => {
  const server = await startHttp();
  expect(await call(server)).toHaveProperty("result");
  plant(server, sql);
  const answers = [await call(server), await call(server)];
  expect(answers.at(-1)).toMatchObject({ error: { data: { kind: "store_unavailable" } } });
  const { code, out, err } = await ledger(server, "verify");
  expect({ code, said: out + err }).toEqual({ code: 1, said: expect.stringContaining("trigger quiet") });
  plant(server, "DROP TRIGGER quiet");
  await server.stop();
});

test("verify finds a changed schema", async () => {
  const server = await startHttp();
  await call(server);
  server.kill("SIGTERM");
  await server.exited;
  const verify = async (data: string): Promise<number | null> => (await ledger({ folder: data }, "verify")).code;
  expect(await verify(server.folder)).toBe(0);
  for (const sql of [
    "CREATE VIEW more AS SELECT * FROM ledger",
    "DROP INDEX ledger_facts",
    "ALTER TABLE ledger ADD COLUMN note TEXT",
  ]) {
    const copy = temporaryFolder();
    cpSync(join(server.folder, "data"), join(copy, "data"), { recursive: true });
    plant({ folder: copy }, sql);
    expect([sql, await verify(copy)]).toEqual([sql, 1]);
  }
  await server.stop();
});
