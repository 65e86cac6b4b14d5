import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PageOperator, PageStream } from "../escape/dashboard-lab.ts";
import { runCli } from "./cli-process.ts";
import { call, startGoverned, token } from "./governance-lab.ts";
import { until } from "./harness.ts";

const ADMIN = "owlclaw:admin";

type Governed = Awaited<ReturnType<typeof startGoverned>>;

let server: Governed;
let root: PageOperator;
let ada: string;
let eve: string;

async function operator(origin: string, subject: string, groups: readonly string[] = []): Promise<PageOperator> {
  const { login, cookieOf } = await import("../escape/dashboard-lab.ts");
  const answer = await login(origin, await token(subject, { scope: ADMIN, groups }));
  return new PageOperator(origin, cookieOf(answer), answer.json.csrf);
}

beforeAll(async () => {
  server = await startGoverned({
    hasAuth: true,
    governance: {
      clients: {
        ada: { monthlyBudget: 10, deny: [{ match: "fail", reason: "not for ada" }] },
        kim: { monthlyBudget: 2.1 },
        zoe: { monthlyBudget: 5 },
      },
      groups: { junior: { deny: [{ match: "fail", reason: "not for juniors" }] } },
      tools: { echo: { cost: 2 } },
      rules: [
        { id: "ask", when: 'tool == "add"', effect: "confirm", confirm: "operator", reason: "sums are dear" },
        {
          id: "juniors",
          when: 'tool == "hold" && has(claims.groups) && "junior" in claims.groups',
          effect: "deny",
          reason: "not yet",
        },
        { id: "long", when: 'tool == "echo" && args.text == "forbidden"', effect: "deny", reason: "not that" },
      ],
    },
  });
  root = await operator(server.origin, "root");
  [ada, eve] = [await token("ada"), await token("eve")];
  for (const text of ["first <b>words</b>", "second", "forbidden"])
    await call(server.url, "echo", { text }, { token: ada });
  await call(server.url, "echo", { text: "third" }, { token: eve });
});

afterAll(() => server.stop());

describe("the ledger", () => {
  test("comes in pages by number, newest first, with what it was asked for", async () => {
    const { json } = await root.get("ledger?kind=tool&limit=3");
    expect(json).toMatchObject({ total: 4, more: true, next: expect.any(Number) });
    expect(json.rows.map((row: Record<string, unknown>) => [row["client"], row["tool"], row["decision"]])).toEqual([
      ["eve", "echo", "allow"],
      ["ada", "echo", "deny"],
      ["ada", "echo", "allow"],
    ]);
    const older = await root.get(`ledger?kind=tool&limit=3&before=${json.next}`);
    expect(older.json).toMatchObject({ more: false, rows: [{ client: "ada", seq: json.rows[2].seq - 1 }] });
    const newer = await root.get(`ledger?kind=tool&limit=2&after=${older.json.rows[0].seq}`);
    expect(newer.json.rows.map(({ seq }: { seq: number }) => seq)).toEqual([json.rows[1].seq, json.rows[2].seq]);
  });

  test("is searched for a text as it stands: no sign of it is a pattern", async () => {
    const found = async (text: string): Promise<number> =>
      (await root.get(`ledger?text=${encodeURIComponent(text)}`)).json.rows.length;
    expect(await found("<B>words")).toBe(1);
    expect(await found("%")).toBe(0);
    expect(await found("sec_nd")).toBe(0);
    expect(await found("' OR 1=1 --")).toBe(0);
  });

  test("shows one call whole, with its place in the chain and where its time went", async () => {
    const { json } = await root.get("ledger?client=ada&outcome=ok");
    const { seq } = json.rows[0];
    const whole = (await root.get(`ledger/${seq}`)).json;
    const before = (await root.get(`ledger/${seq - 1}`)).json;
    expect(whole).toMatchObject({
      args: { text: "second" },
      costMicros: 2_000_000,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      previousHash: before.hash,
      stages: [{ name: "policy" }, { name: "run" }, { name: "ledger" }],
    });
    expect((await root.get("ledger/999999")).status).toBe(404);
  });

  test("is counted over time, exported as it is filtered, and verified", async () => {
    const { json } = await root.get("ledger/timeline?kind=tool&from=1h&buckets=12");
    expect(json.buckets).toHaveLength(12);
    const sum = (name: string): number =>
      json.buckets.reduce((all: number, bucket: Record<string, number>) => all + (bucket[name] ?? 0), 0);
    expect([sum("allowed"), sum("refused"), sum("failed")]).toEqual([3, 1, 0]);
    const csv = await root.get("ledger/export?format=csv&client=eve&kind=tool");
    expect(csv.headers["content-disposition"]).toMatch(/^attachment; filename="ledger.csv"/);
    expect(csv.text.trim().split("\r\n")).toHaveLength(2);
    const lines = (await root.get("ledger/export?client=ada&text=words")).text.trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).args)).toEqual([{ text: "first <b>words</b>" }]);
    expect((await root.post("ledger/verify")).json).toMatchObject({ ok: true, rows: expect.any(Number) });
    const { rows } = (await root.get("ledger?kind=admin&client=root&tool=operator.ledger_*")).json;
    expect(rows.map(({ tool }: { tool: string }) => tool)).toEqual([
      "operator.ledger_verify",
      "operator.ledger_export",
      "operator.ledger_export",
      "operator.ledger_read",
    ]);
    expect((await root.get(`ledger/${rows[1].seq}`)).json.args).toEqual({ client: "ada", text: "words" });
  });
});

function partOfMonth(ms: number): number {
  const now = new Date(ms);
  const [startMs, endMs] = [0, 1].map((later) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + later));
  return Math.max(3_600_000, ms - Number(startMs)) / (Number(endMs) - Number(startMs));
}

describe("spend", () => {
  test("is told by client, tool and day, against budgets and with what is to come", async () => {
    await call(server.url, "echo", { text: "dear" }, { token: await token("kim") });
    const beforeMs = Date.now();
    const { json } = await root.get("spend");
    const afterMs = Date.now();
    expect(json.clients).toContainEqual(expect.objectContaining({ client: "ada", costMicros: 4_000_000, refused: 1 }));
    expect(json.tools).toContainEqual(expect.objectContaining({ tool: "echo", costMicros: 8_000_000 }));
    const wanted = [
      { client: "ada", usedMicros: 4_000_000, limitMicros: 10_000_000, forecastMicros: expect.any(Number) },
      { client: "kim", usedMicros: 2_000_000, limitMicros: 2_100_000, forecastMicros: expect.any(Number) },
      { client: "zoe", usedMicros: 0, limitMicros: 5_000_000, forecastMicros: 0 },
    ];
    expect(json.budgets).toEqual(wanted);
    // The whole month's length stands to what is over of it as the forecast to what was spent.
    for (const { usedMicros, forecastMicros } of [json.month, ...json.budgets]) {
      expect(forecastMicros).toBeGreaterThanOrEqual(Math.floor(usedMicros / partOfMonth(afterMs)));
      expect(forecastMicros).toBeLessThanOrEqual(Math.ceil(usedMicros / partOfMonth(beforeMs)));
    }
    expect(json.month.usedMicros).toBe(8_000_000);
    expect(json.nearLimits).toEqual([{ client: "kim", limit: "budget", used: 2_000_000, most: 2_100_000 }]);
    // Whatever time is looked at: budgets are of this month.
    const later = await root.get(`spend?from=${new Date(Date.now() + 3_600_000).toISOString()}`);
    expect(later.json).toMatchObject({ clients: [], budgets: wanted, nearLimits: json.nearLimits });
  });
});

describe("approvals", () => {
  test("are shown with their rule and decided on the record; nobody decides on a call of their own", async () => {
    const stream = await PageStream.open(root, "live");
    const waiting = call(server.url, "add", { a: 1, b: 2 }, { token: ada });
    await stream.find(({ data }) => data.approvals?.length === 1);
    const { json } = await root.get("approvals");
    expect(json.approvals).toEqual([
      expect.objectContaining({
        principal: "ada",
        tool: "add",
        args: { a: 1, b: 2 },
        rule: "rules.ask",
        reason: "sums are dear",
      }),
    ]);
    const [{ id }] = json.approvals;
    const self = await operator(server.origin, "ada");
    expect((await self.post(`approvals/${id}`, { decision: "approve", reason: "" })).status).toBe(403);
    expect((await root.post(`approvals/${id}`, { decision: "maybe" })).status).toBe(400);
    expect((await root.post(`approvals/${id}`, { decision: "approve", reason: "fine" })).status).toBe(200);
    expect((await waiting).body.result).toMatchObject({ content: [{ text: expect.stringContaining("3") }] });
    expect((await root.post(`approvals/${id}`, { decision: "deny", reason: "" })).status).toBe(404);
    const { rows } = (await root.get("ledger?kind=admin&tool=approval.approve")).json;
    expect(rows).toEqual([expect.objectContaining({ client: "root" })]);
    stream.close();
  });
});

describe("policy, tools and handlers", () => {
  test("say what a client may do, and why", async () => {
    const { json } = await root.get("policy?client=ada");
    const of = (name: string): unknown => json.tools.find(({ tool }: { tool: string }) => tool === name);
    expect(of("fail")).toMatchObject({ decision: "deny", visible: false, reason: "not for ada" });
    expect(of("echo")).toMatchObject({ decision: "depends" });
    const explained = await root.post("policy/explain", { client: "eve", tool: "echo", args: { text: "forbidden" } });
    expect(explained.json).toMatchObject({ decision: "deny", rule: "rules.long", reason: "not that" });
    const empty = await root.post("policy/explain", { client: "eve", tool: "typed", args: { text: "no count" } });
    expect(empty.json).toMatchObject({ mistake: expect.stringContaining("count") });
    const { clients } = (await root.get("clients")).json;
    expect(clients.map(({ client }: { client: string }) => client)).toEqual(expect.arrayContaining(["ada", "eve"]));
    expect((await root.get("reload")).json).toEqual({ ok: true, problems: [] });
  });

  test("show each tool with its schema, and let the operator try it on the record", async () => {
    const visible = (await root.get("tools?client=ada")).json.tools.map(({ name }: { name: string }) => name);
    expect(visible).not.toContain("fail");
    const { tools } = (await root.get("tools")).json;
    expect(tools).toContainEqual(
      expect.objectContaining({ name: "echo", inputSchema: expect.objectContaining({ type: "object" }) }),
    );
    const tried = await root.post("tools/call", { name: "echo", arguments: { text: "from the page" } });
    expect(tried.json).toMatchObject({ ok: true, content: [{ text: expect.stringContaining("from the page") }] });
    const wrong = await root.post("tools/call", { name: "hold", arguments: {} });
    expect(wrong.json).toMatchObject({ ok: false, error: { kind: "invalid_arguments" } });
    expect((await root.get("ledger?client=root&kind=tool")).json.rows).toHaveLength(2);
    const { handlers } = (await root.get("handlers")).json;
    expect(handlers).toContainEqual(expect.objectContaining({ tool: "echo" }));
    expect((await root.get("skills")).json).toEqual({ skills: [], problems: [] });
  });
});

test("an operator's own call is held to their groups and claims", async () => {
  const junior = await operator(server.origin, "kim", ["junior"]);
  const tried = async (who: PageOperator, name: string, args = {}): Promise<unknown> =>
    (await who.post("tools/call", { name, arguments: args })).json.error?.message;
  expect(await tried(junior, "fail")).toContain("not for juniors");
  expect(await tried(junior, "hold", { label: "x" })).toContain("not yet");
  expect(await tried(root, "fail")).not.toContain("not for juniors");
});

describe("news of the ledger", () => {
  test("say how far it was looked through, so that whoever waits for news does not look again from the start", async () => {
    const newestOf = async (query: string): Promise<number> => (await root.get(`ledger?${query}`)).json.newest;
    const head = await newestOf("limit=1");
    expect(head).toBe((await root.get("ledger?limit=1")).json.rows[0].seq);
    expect(await newestOf("text=nobody%20said%20this&limit=1")).toBe(head);
    await call(server.url, "echo", { text: "seldom seen" }, { token: eve });
    const { json } = await root.get(`ledger?text=seldom&after=${head}&limit=5`);
    expect(json.rows).toMatchObject([{ client: "eve", tool: "echo" }]);
    expect(json.newest).toBeGreaterThanOrEqual(json.rows[0].seq);
    expect((await root.get(`ledger?text=seldom&after=${json.newest}`)).json.rows).toEqual([]);
    expect((await root.get(`ledger?text=seldom&after=${head}&limit=1`)).json.newest).toBe(json.rows[0].seq);
  });
});

describe("what operators do", () => {
  test("is nobody's call: neither spend nor the list of clients counts it", async () => {
    const auditor = await operator(server.origin, "auditor");
    await auditor.post("ledger/verify");
    expect((await root.get("ledger?client=auditor&kind=admin&tool=operator.ledger_*")).json.rows).toHaveLength(1);
    const { clients, tools } = (await root.get("spend")).json;
    const { clients: listed } = (await root.get("clients")).json;
    expect([...clients, ...listed].map(({ client }: { client: string }) => client)).not.toContain("auditor");
    expect(tools.map(({ tool }: { tool: string }) => tool)).not.toContain("operator.ledger_verify");
  });
});

describe("the switch", () => {
  test("stops one client at once, ends what runs, is seen everywhere, and lets go again", async () => {
    const held = call(server.url, "hold", { label: "paused" }, { token: ada });
    await until(
      () => root.get("now"),
      ({ json }) =>
        json.calls.some(({ tool, stage }: { tool: string; stage: string }) => tool === "hold" && stage === "running"),
    );
    const paused = await root.post("pause", { client: "ada", reason: "look into it", cancel: true });
    expect(paused.json.paused).toEqual([
      { client: "ada", by: "root", reason: "look into it", since: expect.stringMatching(/Z$/), cancel: true },
    ]);
    expect((await held).body.error).toMatchObject({ data: { kind: "cancelled" } });
    const refused = await call(server.url, "echo", { text: "still here" }, { token: ada });
    expect(refused.body.error).toMatchObject({ data: { kind: "paused", reason: "look into it" } });
    expect((await call(server.url, "echo", { text: "free" }, { token: eve })).body.result).toBeDefined();
    const [line] = (await root.get("ledger?client=ada&outcome=refused&limit=1")).json.rows;
    expect(line).toMatchObject({ errorKind: "paused", decision: "deny", rule: "paused" });
    // Health is looked at once a second at most.
    const now = await until(
      () => root.get("now"),
      ({ json }) => json.health.status === "degraded",
    );
    expect(now.json).toMatchObject({
      paused: [{ client: "ada" }],
      health: { checks: { paused: { status: "degraded" } } },
    });
    await root.post("resume", { client: "ada" });
    expect((await call(server.url, "echo", { text: "again" }, { token: ada })).body.result).toBeDefined();
    const acts = (await root.get("ledger?kind=admin&tool=client.*")).json.rows;
    expect(acts.map(({ tool }: { tool: string }) => tool)).toEqual(["client.resume", "client.pause"]);
  });

  test("is worked from the command line, holds for everybody, and survives a restart", async () => {
    const env = { SANDBOX_ROOT: server.root };
    const stopped = await runCli(["mcp-server", "pause", "--all", "--reason", "maintenance"], { env });
    expect(stopped).toMatchObject({ code: 0, out: expect.stringMatching(/everybody\s+local:\S+.*maintenance/) });
    expect((await call(server.url, "echo", { text: "x" }, { token: eve })).body.error).toMatchObject({
      data: { kind: "paused" },
    });
    await server.stop();
    server = await startGoverned({ hasAuth: true, root: server.root });
    expect((await call(server.url, "echo", { text: "x" }, { token: eve })).body.error).toMatchObject({
      data: { kind: "paused" },
    });
    const listed = await runCli(["mcp-server", "pause", "--json"], { env });
    expect(JSON.parse(listed.out).paused).toMatchObject([{ client: "*" }]);
    expect(await runCli(["mcp-server", "resume", "--all"], { env })).toMatchObject({ code: 0 });
    expect((await call(server.url, "echo", { text: "x" }, { token: eve })).body.result).toBeDefined();
    expect(await runCli(["mcp-server", "resume", "eve"], { env })).toMatchObject({
      code: 2,
      err: expect.stringContaining("not paused"),
    });
  });
});
