import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parseHead } from "../../../src/ledger/checkpoint.ts";
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
    void text(request).then((body) => {
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
  await appendMany(ledger, 25);
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

test("repeated refusals of one principal and rule are one row and a count", async () => {
  const { ledger } = await openTestLedger(dataFolder());
  const seqs = await appendMany(ledger, 1000, { ...REFUSED, name: "shell_exec" });
  expect(new Set(seqs)).toEqual(new Set([1]));
  await ledger.append(entry({ ...REFUSED, name: "code_run" }));
  await ledger.append(entry({ ...REFUSED, rule: "hidden" }));
  await ledger.append(entry({ ...REFUSED, principal: "bob" }));
  const stats = await ledger.reader.stats({});
  expect(stats.total.refused).toBe(3);
  await ledger.close();
});

test("counted refusals are written when the server stops, and statistics add them up", async () => {
  const folder = dataFolder();
  const { ledger } = await openTestLedger(folder);
  await appendMany(ledger, 500, { ...REFUSED, name: "shell_exec" });
  await ledger.append(entry({ ...REFUSED, name: "code_run" }));
  await ledger.close();
  const { ledger: again } = await openTestLedger(folder);
  const rows = await again.reader.list({}, { limit: 10, order: "oldest" });
  expect(rows.map(({ kind, count, name }) => ({ kind, count, name }))).toEqual([
    { kind: "tool", count: 1, name: "shell_exec" },
    { kind: "refusals", count: 500, name: "shell_exec" },
  ]);
  expect(JSON.parse(rows[1]?.args ?? "")).toMatchObject({ first_seq: 1, names: { shell_exec: 499, code_run: 1 } });
  expect((await again.reader.stats({})).total).toMatchObject({ calls: 501, refused: 501 });
  expect((await again.reader.verify({})).isIntact).toBe(true);
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
