import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { parseHead } from "../../../../src/governance/ledger/checkpoint.ts";
import { wholeBody } from "../../../services/whole-body.ts";
import { entry } from "./ledger-entry.ts";
import { appendMany, dataFolder, openTestLedger, REFUSED } from "./ledger-fixture.ts";

test("[004-R8.6] keeps client, parameters, result and cost of a call, with the rule that let it through", async () => {
  const { ledger } = await openTestLedger(dataFolder());
  const { seq } = await ledger.append(entry({ label: "desk", flags: ["over_max_cost"] }));
  expect(await ledger.reader.get(seq)).toEqual({
    seq: 1,
    time: Date.UTC(2026, 6, 28, 12),
    principal: "ada",
    label: "desk",
    transport: "http",
    kind: "tool",
    name: "code_run",
    called_as: "execute_code",
    args: '{"code":"print(6*7)"}',
    result: '{"content":[{"type":"text","text":"42"}]}',
    outcome: "ok",
    error_kind: null,
    decision: "allow",
    rule: "default",
    policy_revision: "rev-1",
    duration_us: 12_500,
    cost_micros: 250,
    trace_id: "0af7651916cd43dd8448eb211c80319c",
    sandbox: "owl-1",
    flags: '["over_max_cost"]',
    count: 1,
    hash: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
});

test("numbers rows without gaps, in the order in which they came, and goes on after a restart", async () => {
  const folder = dataFolder();
  const first = await openTestLedger(folder);
  expect(await appendMany(first.ledger, 20)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  await first.ledger.close();
  const second = await openTestLedger(folder);
  // Row 21 is the signature at the first one's end.
  expect(await appendMany(second.ledger, 2)).toEqual([22, 23]);
  expect(await second.ledger.reader.verify({})).toMatchObject({ isIntact: true, rows: 23, checkpoints: 1 });
});

test("two servers on one data folder make one chain", async () => {
  const folder = dataFolder();
  const [one, other] = await Promise.all([openTestLedger(folder), openTestLedger(folder)]);
  const seqs = await Promise.all([appendMany(one.ledger, 300), appendMany(other.ledger, 300)]);
  expect(new Set(seqs.flat()).size).toBe(600);
  expect(await one.ledger.reader.verify({})).toMatchObject({ isIntact: true, rows: 600 });
});

test("signs the chain every so many rows and at the end, and tells log and webhook", async () => {
  const posts: Record<string, unknown>[] = [];
  const server = createServer((request, response) => {
    void wholeBody(request).then((body) => {
      if (body === undefined) return;
      posts.push(JSON.parse(body) as Record<string, unknown>);
      response.end();
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const { ledger, log } = await openTestLedger(dataFolder(), {
    checkpointEvery: 10,
    webhook: `http://127.0.0.1:${port}/`,
  });
  await appendMany(ledger, 15);
  // Of heads that wait for the webhook only the newest is told.
  await vi.waitFor(() => expect(posts).toHaveLength(1), { timeout: 10_000 });
  await appendMany(ledger, 10);
  await vi.waitFor(() => expect(posts).toHaveLength(2), { timeout: 10_000 });
  await ledger.close();
  const heads = log.filter(({ message }) => message === "ledger head").map(({ head }) => parseHead(String(head))?.seq);
  // Rows 10 and 20 sign those before them; 25 entries and two checkpoints are 27 rows.
  expect(heads).toEqual([9, 19, 27]);
  expect(posts.map(({ event, facts }) => [event, (facts as { seq: number }).seq])).toEqual([
    ["ledger_head", 9],
    ["ledger_head", 19],
    ["ledger_head", 27],
  ]);
});

test("a second close does nothing, and a ledger that is signed is not signed again", async () => {
  const folder = dataFolder();
  const { ledger } = await openTestLedger(folder);
  await appendMany(ledger, 3);
  await ledger.close();
  await ledger.close();
  const again = await openTestLedger(folder);
  await again.ledger.close();
  const third = await openTestLedger(folder);
  expect(await third.ledger.reader.head()).toMatchObject({ seq: 4 });
});

test("everything is for the server's user alone", async () => {
  const folder = dataFolder();
  const { ledger } = await openTestLedger(folder);
  await appendMany(ledger, 1);
  await ledger.close();
  expect(statSync(join(folder, "ledger.db")).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, "keys")).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(join(folder, "keys"))) {
    expect([name, statSync(join(folder, "keys", name)).mode & 0o077]).toEqual([name, 0]);
  }
});

test("refusals of one principal and rule that differ are rows, up to ten; those that repeat are counted", async () => {
  const { ledger } = await openTestLedger(dataFolder());
  const seqs = await appendMany(ledger, 1000, { ...REFUSED, name: "shell_exec" });
  expect(new Set(seqs)).toEqual(new Set([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]));
  const same = { ...REFUSED, name: "shell_exec", args: { command: "ls" }, rule: "hidden" } as const;
  expect((await ledger.append(entry(same))).seq).toBe((await ledger.append(entry(same))).seq);
  await ledger.append(entry({ ...REFUSED, name: "code_run" }));
  await ledger.append(entry({ ...REFUSED, rule: "hidden" }));
  await ledger.append(entry({ ...REFUSED, principal: "bob" }));
  const stats = await ledger.reader.stats({});
  expect(stats.total.refused).toBe(13);
  await ledger.close();
});

test("counted refusals are written when the server stops, and statistics add them up", async () => {
  const folder = dataFolder();
  const { ledger } = await openTestLedger(folder);
  await appendMany(ledger, 500, { ...REFUSED, name: "shell_exec", args: { command: "ls" } });
  await appendMany(ledger, 2, { ...REFUSED, name: "code_run", args: { code: "1" } });
  await ledger.close();
  const { ledger: again } = await openTestLedger(folder);
  const rows = await again.reader.list({}, { limit: 10, order: "oldest" });
  expect(rows.map(({ kind, count, name, called_as }) => ({ kind, count, name, called_as }))).toEqual([
    { kind: "tool", count: 1, name: "shell_exec", called_as: "execute_code" },
    { kind: "tool", count: 1, name: "code_run", called_as: "execute_code" },
    { kind: "refusals", count: 499, name: "shell_exec", called_as: "execute_code" },
    { kind: "refusals", count: 1, name: "code_run", called_as: "code_run" },
  ]);
  expect(JSON.parse(rows[2]?.args ?? "")).toMatchObject({ first_seq: 1 });
  const { total, tools } = await again.reader.stats({});
  expect(total).toMatchObject({ calls: 502, refused: 502 });
  expect(tools.map(({ tool, refused }) => [tool, refused])).toEqual([
    ["shell_exec", 500],
    ["code_run", 2],
  ]);
  expect((await again.reader.verify({})).isIntact).toBe(true);
});

test("statistics count calls: no list, no word to a task, no act of an operator, and a call that ran on once", async () => {
  const { ledger } = await openTestLedger(dataFolder());
  for (const kind of ["tool", "resource", "prompt", "completion", "list", "task", "admin"] as const)
    await ledger.append(entry({ kind, name: kind, costMicros: 0, durationMs: 1 }));
  const stopped = { name: "slow", outcome: "cancelled", durationMs: 2 } as const;
  await ledger.append(entry({ ...stopped, costMicros: 0, flags: ["runs_on"] }));
  await ledger.append(entry({ ...stopped, costMicros: 7, durationMs: 60_000, flags: ["ran_on"], count: 0 }));
  const { total, tools } = await ledger.reader.stats({});
  expect(total).toEqual({ calls: 5, refused: 0, failed: 1, costMicros: 7, durationMs: 6 });
  expect(tools.map(({ tool, calls }) => [tool, calls])).toEqual([
    ["completion", 1],
    ["prompt", 1],
    ["resource", 1],
    ["slow", 1],
    ["tool", 1],
  ]);
  expect((await ledger.reader.stats({ kind: "list" })).total.calls).toBe(1);
});

test("text that databases dislike comes back as it was hashed", async () => {
  const { ledger } = await openTestLedger(dataFolder());
  const odd = 'a\0b\u0001\u001f"\\/\b\f\n\r\t\u007f\u2028\ud800 \udc00 é 😀';
  await ledger.append(
    entry({ name: odd, calledAs: odd, args: { [odd]: odd }, result: odd, label: odd, rule: odd, flags: [odd] }),
  );
  await ledger.append(entry({ durationMs: Number.NaN, costMicros: 1e300, time: Number.POSITIVE_INFINITY }));
  expect(await ledger.reader.verify({})).toMatchObject({ isIntact: true, rows: 2 });
  const row = await ledger.reader.get(1);
  expect(JSON.parse(row?.result ?? "")).toBe(odd);
});

test("the public key is there for auditors", async () => {
  const folder = dataFolder();
  await openTestLedger(folder);
  expect(readFileSync(join(folder, "keys", "ledger-signing.pub.pem"), "utf8")).toContain("BEGIN PUBLIC KEY");
});

test("days are counted as a clock on the wall has them, also on the day when it is put back", async () => {
  const { ledger } = await openTestLedger(dataFolder());
  // In Berlin: the 24th's last moment, the 25th's first, its last after 25 hours, and the 26th's first.
  const times = [
    "2026-10-24T21:59:59.999Z",
    "2026-10-24T22:00:00Z",
    "2026-10-25T22:59:59.999Z",
    "2026-10-25T23:00:00Z",
  ];
  for (const time of times) await ledger.append(entry({ time: Date.parse(time) }));
  const summer = { fromMs: Date.parse("2026-10-20T00:00:00Z"), shiftMs: 7_200_000 };
  const winter = { fromMs: Date.parse("2026-10-25T01:00:00Z"), shiftMs: 3_600_000 };
  const callsByDay = async (shifts: Parameters<typeof ledger.reader.stats>[1] = []): Promise<unknown> =>
    (await ledger.reader.stats({}, shifts)).days.map(({ day, calls }) => [day, calls]);
  expect(await callsByDay([summer, winter])).toEqual([
    ["2026-10-26", 1],
    ["2026-10-25", 2],
    ["2026-10-24", 1],
  ]);
  expect(await callsByDay([{ ...winter, shiftMs: -3_600_000 }])).toEqual([
    ["2026-10-25", 2],
    ["2026-10-24", 2],
  ]);
  expect(await callsByDay()).toEqual([
    ["2026-10-25", 2],
    ["2026-10-24", 2],
  ]);
  await ledger.close();
});

test("signs the chain by time, too, when there are new rows, and never a signature", async () => {
  const { ledger } = await openTestLedger(dataFolder(), { checkpointMinutes: 1 / 6000 });
  const signed = async (): Promise<number> => (await ledger.reader.verify({})).checkpoints;
  for (const count of [1, 2, 3, 4]) {
    await appendMany(ledger, 2);
    await expect.poll(signed, { timeout: 30_000, interval: 100 }).toBe(count);
  }
  expect(await ledger.reader.verify({})).toMatchObject({ isIntact: true, rows: 12, checkpoints: 4 });
});

test("rows that come while the chain is signed are signed in their order", async () => {
  const { ledger } = await openTestLedger(dataFolder(), { checkpointMinutes: 1 / 60_000 });
  for (let round = 0; round < 100; round += 1) await appendMany(ledger, 3);
  const { isIntact, checkpoints } = await ledger.reader.verify({});
  expect([isIntact, checkpoints > 3]).toEqual([true, true]);
});
