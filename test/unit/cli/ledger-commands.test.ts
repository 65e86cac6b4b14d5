import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { describe, expect, test } from "vitest";
import { displayWidth } from "../../../src/cli/text.ts";
import { run } from "../../../src/cli/run.ts";
import { formatHead } from "../../../src/governance/ledger/checkpoint.ts";
import { ENTRY, entry } from "../governance/ledger/ledger-entry.ts";
import { appendMany, dataFolder, openTestLedger, REFUSED } from "../governance/ledger/ledger-fixture.ts";
import { fakeTerminal } from "./fake-terminal.ts";

async function ledgerCli(folder: string, argv: readonly string[], width = Number.POSITIVE_INFINITY) {
  const terminal = fakeTerminal({ width });
  const code = await run(["mcp-server", "ledger", ...argv, "--set", `sandbox.root=${folder}`], terminal);
  return { code, ...terminal.written };
}

/** A ledger with a few telling rows; the server that wrote it still runs. */
async function filled(): Promise<{ folder: string; close: () => Promise<void> }> {
  const folder = dataFolder();
  const { ledger } = await openTestLedger(folder);
  await ledger.append(entry({ label: "desk" }));
  await ledger.append(
    entry({ principal: "bob", name: "file_read", calledAs: "file.read", args: { path: '=1+1\n,"x' } }),
  );
  await ledger.append(entry({ ...REFUSED, principal: "bob", name: "shell_exec", time: Date.now() }));
  await ledger.append(entry({ kind: "resource", name: "skill://ops/deploy", outcome: "failed", errorKind: "timeout" }));
  return { folder, close: () => ledger.close() };
}

const names = (out: string): unknown[] =>
  (JSON.parse(out) as { rows: { name: string }[] }).rows.map(({ name }) => name);

describe("[004-R8.6] ledger list beside a running server", () => {
  test("shows the newest first, in a table that fits the terminal", async () => {
    const { folder } = await filled();
    const { code, out, err } = await ledgerCli(folder, ["list"], 80);
    expect([code, err]).toEqual([0, ""]);
    const lines = out.trimEnd().split("\n");
    expect(lines).toHaveLength(5);
    expect(lines[0]).toMatch(/^SEQ +TIME/);
    expect(lines[1]).toMatch(/^4 /);
    for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(80);
  });

  test.each([
    [
      ["--client", "bob"],
      ["shell_exec", "file_read"],
    ],
    [["--tool", "file_*"], ["file_read"]],
    [["--tool", "code_run"], ["code_run"]],
    [["--decision", "deny"], ["shell_exec"]],
    [["--outcome", "failed"], ["skill://ops/deploy"]],
    [["--kind", "resource"], ["skill://ops/deploy"]],
    [["--label", "desk"], ["code_run"]],
    [["--rule", "callsPerMinute"], ["shell_exec"]],
    [["--trace", ENTRY.traceId, "--limit", "1"], ["skill://ops/deploy"]],
    [["--from", "1h"], ["shell_exec"]],
    [
      ["--to", "2026-07-29"],
      ["skill://ops/deploy", "file_read", "code_run"],
    ],
    [
      ["--from", "2026-07-28", "--to", "2026-07-28T12:00:00.001Z", "--client", "ada"],
      ["skill://ops/deploy", "code_run"],
    ],
    [["--client", "nobody"], []],
    [["--tool", "[abc]*"], []],
  ])("%j", async (flags, expected) => {
    const { folder } = await filled();
    const { out } = await ledgerCli(folder, ["list", "--json", ...flags]);
    expect(names(out)).toEqual(expected);
  });

  test.each([
    [["--from", "yesterday"], "--from"],
    [["--limit", "0"], "--limit"],
    [["--decision", "maybe"], "--decision"],
  ])("%j is refused with the choices", async (flags, named) => {
    const { folder } = await filled();
    const { code, err } = await ledgerCli(folder, ["list", ...flags]);
    expect([code, err]).toEqual([2, expect.stringContaining(named)]);
  });

  test("without a ledger it says where it looked, and makes none", async () => {
    const folder = dataFolder();
    const { code, err } = await ledgerCli(folder, ["list"]);
    expect([code, err]).toEqual([1, expect.stringContaining(`there is no ledger at ${join(folder, "ledger.db")}`)]);
    expect(() => statSync(join(folder, "ledger.db"))).toThrow("ENOENT");
  });
});

test("ledger show has the whole row", async () => {
  const { folder } = await filled();
  const { out } = await ledgerCli(folder, ["show", "2"]);
  expect(out).toMatch(/^called_as +file\.read$/m);
  const { out: json } = await ledgerCli(folder, ["show", "2", "--json"]);
  expect(JSON.parse(json)).toMatchObject({ seq: 2, args: { path: '=1+1\n,"x' }, time: "2026-07-28T12:00:00.000Z" });
  expect(await ledgerCli(folder, ["show", "99"])).toMatchObject({ code: 1, err: expect.stringContaining("no row 99") });
  expect(await ledgerCli(folder, ["show", "x"])).toMatchObject({ code: 2 });
});

describe("ledger export", () => {
  test("JSON lines, the oldest first, longer than one page", async () => {
    const folder = dataFolder();
    const { ledger } = await openTestLedger(folder);
    await appendMany(ledger, 1203);
    const { out } = await ledgerCli(folder, ["export"]);
    const rows = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { seq: number; args: { index: number } });
    expect(rows.map(({ args }) => args.index)).toEqual(Array.from({ length: 1203 }, (_, index) => index));
  });

  test("CSV that no spreadsheet runs, for the owner's eyes", async () => {
    const folder = dataFolder();
    const { ledger } = await openTestLedger(folder);
    await ledger.append(
      entry({ name: '=cmd|"/c calc"!A1', calledAs: "+x", label: "@y", rule: "-z", principal: "\tq" }),
    );
    const file = join(folder, "out.csv");
    expect((await ledgerCli(folder, ["export", "--format", "csv", "--output", file])).code).toBe(0);
    const [header, line] = readFileSync(file, "utf8").split("\r\n");
    expect(header).toMatch(/^seq,time,principal,label,.*,hash$/);
    expect(line).toContain(`1,2026-07-28T12:00:00.000Z,'\tq,'@y,http,tool,"'=cmd|""/c calc""!A1",'+x,`);
    expect(line).toContain(",'-z,");
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});

describe("ledger verify", () => {
  test("says that all is well, and with what head", async () => {
    const { folder, close } = await filled();
    await close();
    const { code, out } = await ledgerCli(folder, ["verify"]);
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/^intact: 5 rows, 1 of them signed checkpoints\nhead: 5:[0-9a-f]{64}\n$/),
    ]);
  });

  test("exit code 1 and the place when a row was changed", async () => {
    const { folder, close } = await filled();
    await close();
    const db = new Database(join(folder, "ledger.db"));
    db.exec("UPDATE ledger SET cost_micros = 0 WHERE seq = 2");
    db.close();
    const { code, out } = await ledgerCli(folder, ["verify"]);
    expect([code, out]).toEqual([1, expect.stringContaining("row 2: changed: row 2 does not fit the chain")]);
  });

  test("a cut tail with --head, and also by the head beside the keys", async () => {
    const { folder, close } = await filled();
    await close();
    const head = JSON.parse((await ledgerCli(folder, ["verify", "--json"])).out) as {
      head: { seq: number; hash: string };
    };
    const db = new Database(join(folder, "ledger.db"));
    db.exec("DELETE FROM ledger WHERE seq > 2");
    db.close();
    const { code, out } = await ledgerCli(folder, ["verify", "--head", formatHead(head.head)]);
    expect(code).toBe(1);
    expect(out).toContain("the published head is row 5, and the ledger ends with row 2");
    expect((await ledgerCli(folder, ["verify"])).out).toContain("the head in the key folder is row 4");
    expect(await ledgerCli(folder, ["verify", "--head", "5"])).toMatchObject({ code: 2 });
  });
});

test("ledger stats adds up calls and costs by client, tool and day", async () => {
  const { folder } = await filled();
  const { out } = await ledgerCli(folder, ["stats", "--json", "--to", "2026-07-29"]);
  expect(JSON.parse(out)).toEqual({
    total: { calls: 3, refused: 0, failed: 1, costMicros: 750, durationMs: 37 },
    clients: [
      { client: "ada", calls: 2, refused: 0, failed: 1, costMicros: 500, durationMs: 25 },
      { client: "bob", calls: 1, refused: 0, failed: 0, costMicros: 250, durationMs: 12 },
    ],
    tools: ["code_run", "file_read", "skill://ops/deploy"].map((tool) => ({
      tool,
      calls: 1,
      refused: 0,
      failed: tool === "skill://ops/deploy" ? 1 : 0,
      costMicros: 250,
      durationMs: 12,
    })),
    days: [{ day: "2026-07-28", calls: 3, refused: 0, failed: 1, costMicros: 750, durationMs: 37 }],
  });
  expect((await ledgerCli(folder, ["stats"], 60)).out).toMatch(/^CLIENT +CALLS/);
});
