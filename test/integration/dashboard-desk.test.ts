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

async function operator(origin: string, subject: string): Promise<PageOperator> {
  const { login, cookieOf } = await import("../escape/dashboard-lab.ts");
  const answer = await login(origin, await token(subject, { scope: ADMIN }));
  return new PageOperator(origin, cookieOf(answer), answer.json.csrf);
}

beforeAll(async () => {
  server = await startGoverned({
    hasAuth: true,
    governance: {
      clients: { ada: { monthlyBudget: 10, deny: [{ match: "fail", reason: "not for ada" }] } },
      tools: { echo: { cost: 2 } },
      rules: [
        { id: "ask", when: 'tool == "add"', effect: "confirm", confirm: "operator", reason: "sums are dear" },
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
  });
});

describe("spend", () => {
  test("is told by client, tool and day, against budgets and with what is to come", async () => {
    const { json } = await root.get("spend");
    expect(json.clients).toContainEqual(expect.objectContaining({ client: "ada", costMicros: 4_000_000, refused: 1 }));
    expect(json.tools).toContainEqual(expect.objectContaining({ tool: "echo", costMicros: 6_000_000 }));
    expect(json.budgets).toEqual([
      { client: "ada", usedMicros: 4_000_000, limitMicros: 10_000_000, forecastMicros: expect.any(Number) },
    ]);
    expect(json.budgets[0].forecastMicros).toBeGreaterThanOrEqual(4_000_000);
    expect(json.nearLimits).toEqual([]);
  });
});

describe("approvals", () => {
  test("are shown with their rule and decided on the record; nobody decides on a call of their own", async () => {
    const stream = await PageStream.open(root, "live");
    const waiting = call(server.url, "add", { a: 1, b: 2 }, { token: ada });
    await stream.find(({ data }) => data.approvals === 1);
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
      { client: "ada", by: "root", reason: "look into it", since: expect.stringMatching(/Z$/) },
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
