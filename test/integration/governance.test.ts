import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { openSession } from "../escape/http-client.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";
import { call, newFolder, rpc, startGoverned, token, toolNames, writeFile } from "./governance-lab.ts";
import { until } from "./harness.ts";
import { BOTH, modern, postJson } from "./http-client.ts";

const DENIED = { kind: "governance_denied", retryable: false };

describe("visibility", () => {
  test("[004-R4.7] [004-R8.1] [003-FR-010] hides, denies with a reason and allows, true to the caller", async () => {
    const governance = {
      defaults: { hidden: ["fail*"] },
      groups: { interns: { deny: [{ match: "add", reason: "ask your mentor" }] } },
      clients: { ada: { visible: ["echo", "add"] } },
    };
    const { url, stop } = await started({ governance, hasAuth: true });
    const ada = { token: await token("ada", { groups: ["interns"] }) };
    const bob = { token: await token("bob") };
    expect(await toolNames(url, ada)).toEqual(["echo"]);
    expect(await toolNames(url, bob)).toContain("add");
    expect(await toolNames(url, bob)).not.toContain("fail");
    const { body } = await rpc(url, "mcp.capabilities", {}, ada);
    expect(body.result?.["tools"]).toMatchObject([
      { name: "add", permissions: { allow: false, scope: "exec", reason: "ask your mentor" } },
      { name: "echo", permissions: { allow: true, scope: "workspace" } },
    ]);
    const refused = await call(url, "add", { a: 1, b: 2 }, ada);
    expect(refused.body.error).toMatchObject({
      code: -32003,
      data: { ...DENIED, rule: "groups.interns.deny", reason: "ask your mentor" },
    });
    expect((await call(url, "list", {}, ada)).body.error?.data).toMatchObject({
      ...DENIED,
      rule: "clients.ada.visible",
    });
    expect((await call(url, "fail", {}, bob)).body.error?.data).toMatchObject({ ...DENIED, rule: "defaults.hidden" });
    expect((await call(url, "echo", { text: "hi" }, ada)).body.result).toBeDefined();
    await stop();
  });

  test("a token of more groups than anybody needs leaves none of them out", async () => {
    const { url, stop } = await started({ governance: { groups: { interns: { deny: ["echo"] } } }, hasAuth: true });
    const many = Array.from({ length: 300 }, (_, index) => `group-${index}`);
    const ada = { token: await token("ada", { groups: [...many, "interns"] }) };
    expect((await call(url, "echo", { text: "hi" }, ada)).body.error?.data).toMatchObject({
      rule: "groups.interns.deny",
    });
    await stop();
  });

  test("[004-R4.8] the list tells what is held against calls of each tool", async () => {
    const governance = { tools: { echo: { cost: 0.5, callsPerMinute: 7, confirm: "client" } } };
    const { url, stop } = await started({ governance });
    const { body } = await rpc(url, "tools/list");
    const echo = body.result?.["tools"].find(({ name }: { name: string }) => name === "echo");
    expect(echo._meta["owlclaw/constraints"]).toEqual({
      calls_per_minute: 7,
      calls_per_day: 50_000,
      concurrency: 64,
      cost: { fixed: 0.5, per_second: 0, per_egress_mb: 0, reserved: 0.5 },
      confirm: "client",
    });
    await stop();
  });
});

describe("rates", () => {
  test("[004-R5.5] [004-R8.5] [004-R8.9] the call over the limit says when to come back", async () => {
    const { url, stop } = await started({ governance: { defaults: { callsPerMinute: 2 } } });
    const sentAt = performance.now();
    const first = await call(url, "echo", { text: "1" });
    const tookMs = performance.now() - sentAt;
    const quota = first.body.result?.["_meta"]["owlclaw/quota"];
    expect(quota).toMatchObject({
      per_minute: { limit: 2, remaining: 1 },
      per_day: { limit: 50_000, remaining: 49_999 },
    });
    expect(quota.per_minute.reset_seconds).toBeLessThanOrEqual(60);
    expect(quota.per_minute.reset_seconds).toBeGreaterThanOrEqual(Math.ceil((60_000 - tookMs) / 1000));
    expect(first.headers.get("ratelimit-policy")).toBe('"minute";q=2;w=60, "day";q=50000;w=86400');
    expect(first.headers.get("ratelimit")).toMatch(/^"minute";r=1;t=\d+, "day";r=49999;t=\d+$/);
    await call(url, "echo", { text: "2" });
    const refused = await call(url, "echo", { text: "3" });
    expect(refused.status).toBe(200);
    const retryAfter = Number(refused.headers.get("retry-after"));
    expect(retryAfter).toBeGreaterThan(50);
    expect(refused.body.error).toMatchObject({
      code: -32003,
      data: {
        kind: "governance_denied",
        rule: "defaults.callsPerMinute",
        policy: expect.stringMatching(/^[0-9a-f]{12}$/),
        limit: 2,
        used: 2,
        remaining: 0,
        reset: expect.stringMatching(/Z$/),
        retry_after: retryAfter,
        retryable: true,
      },
    });
    const inNewest = await modern(url, "tools/call", { name: "echo", arguments: { text: "4" } });
    expect(inNewest.body.error).toMatchObject({ code: -31003, data: { kind: "governance_denied" } });
    await stop();
  });

  test("[004-R8.4] the call over the limit of the day is told when the day ends", async () => {
    const { url, stop } = await started({ governance: { defaults: { callsPerDay: 1 }, timeZone: "Asia/Tokyo" } });
    await call(url, "echo", { text: "1" });
    const { body } = await call(url, "echo", { text: "2" });
    expect(body.error?.data).toMatchObject({ rule: "defaults.callsPerDay", limit: 1, used: 1, retryable: true });
    // Midnight in Tokyo.
    expect(body.error?.data?.["reset"]).toMatch(/T15:00:00\.000Z$/);
    await stop();
  });

  test("[004-R8.7] each principal has its own count, and labels share their principal's", async () => {
    const governance = { defaults: { callsPerMinute: 4 }, labels: { "*": { callsPerMinute: 2 } } };
    const { url, stop } = await started({ governance, hasAuth: true });
    const ada = await token("ada");
    const as = (label: string) => ({ token: ada, label });
    const outcomes = async (label: string, times: number): Promise<(string | undefined)[]> => {
      const rules: (string | undefined)[] = [];
      for (let i = 0; i < times; i++)
        rules.push((await call(url, "echo", { text: "x" }, as(label))).body.error?.data?.["rule"]);
      return rules;
    };
    expect(await outcomes("one", 3)).toEqual([undefined, undefined, "labels.*.callsPerMinute"]);
    expect(await outcomes("two", 3)).toEqual([undefined, undefined, "defaults.callsPerMinute"]);
    expect(await outcomes("three", 1)).toEqual(["defaults.callsPerMinute"]);
    const bob = { token: await token("bob") };
    expect((await call(url, "echo", { text: "x" }, bob)).body.result).toBeDefined();
    await stop();
  });

  test("[004-R7.9] [004-R7.10] reads are refused and limited like calls", async () => {
    const governance = { defaults: { callsPerMinute: 1, hidden: ["fixture://pixel"] } };
    const { url, stop } = await started({ governance });
    expect((await rpc(url, "resources/read", { uri: "fixture://pixel" })).body.error?.data).toMatchObject(DENIED);
    const read = await rpc(url, "resources/read", { uri: "fixture://greeting" });
    expect(read.body.result?.["_meta"]["owlclaw/quota"]).toMatchObject({ per_minute: { remaining: 0 } });
    const refused = await rpc(url, "resources/read", { uri: "fixture://greeting" });
    expect(refused.body.error?.data).toMatchObject({
      rule: "defaults.callsPerMinute",
      retry_after: expect.any(Number),
    });
    await stop();
  });
});

test("[004-R5.4] what policy, a rule, a limit, a budget or an operator refuses has not run", async () => {
  const governance = {
    approvalTimeoutSeconds: 1,
    clients: {
      hidden: { hidden: ["hold"] },
      denied: { deny: ["hold"] },
      limited: { callsPerMinute: 1 },
      poor: { monthlyBudget: 0.5 },
      watched: { confirm: { hold: "operator" } },
    },
    tools: { hold: { cost: 1 } },
    rules: [{ id: "no", when: 'principal == "ruled" && args.label != ""', effect: "deny" }],
  };
  const { url, stop } = await started({ governance, hasAuth: true });
  const callAs = async (who: string, name: string, args: Record<string, unknown>) =>
    (await call(url, name, args, { token: await token(who) })).body;
  await callAs("limited", "echo", { text: "x" });
  const refusals = {
    hidden: "clients.hidden.hidden",
    denied: "clients.denied.deny",
    limited: "clients.limited.callsPerMinute",
    poor: "clients.poor.monthlyBudget",
    watched: "clients.watched.confirm",
    ruled: "rules.no",
  };
  for (const [who, rule] of Object.entries(refusals)) {
    const { error } = await callAs(who, "hold", { label: who });
    expect(error?.data).toMatchObject({ kind: "governance_denied", rule });
  }
  const isStarted = async (label: string): Promise<unknown> =>
    (await callAs("ada", "observe", { label })).result?.["structuredContent"].started;
  for (const who of Object.keys(refusals)) expect(await isStarted(who)).toBe(false);
  const allowed = callAs("ada", "hold", { label: "ada" });
  await until(
    () => isStarted("ada"),
    (yes) => yes === true,
  );
  await callAs("ada", "release", { label: "ada" });
  expect((await allowed).result).toBeDefined();
  await stop();
});

describe("budgets", () => {
  test("[004-R8.2] [004-R8.3] a month's budget and the cost of one call end in a budget error", async () => {
    const governance = { defaults: { monthlyBudget: 2, maxCostPerCall: 2 } };
    const { url, stop } = await started({ governance, handlers: "priced" });
    expect((await call(url, "metered", { units: 1 })).body.error?.data).toMatchObject({
      rule: "defaults.maxCostPerCall",
      limit: 2,
      needed: 3,
    });
    expect((await call(url, "priced")).body.result?.["_meta"]["owlclaw/quota"].budget).toMatchObject({
      limit: 2,
      remaining: 1,
    });
    await call(url, "priced");
    expect((await call(url, "priced")).body.error?.data).toMatchObject({
      kind: "governance_denied",
      rule: "defaults.monthlyBudget",
      reason: "budget",
      limit: 2,
      used: 2,
      remaining: 0,
    });
    await stop();
  });

  test("what a handler reports is charged, also above its maximum, and thresholds are told", async () => {
    const server = await startGoverned({ governance: { defaults: { monthlyBudget: 10 } }, handlers: "priced" });
    const { url } = server;
    await call(url, "metered", { units: 6 });
    const { body } = await call(url, "priced");
    expect(body.result?.["_meta"]["owlclaw/quota"].budget.remaining).toBe(2);
    expect(await server.logged("budget threshold passed")).toMatchObject({ percent: 50, spent: 7, limit: 10 });
    await server.stop();
  });

  test("only a cost above a maximum that somebody set is flagged", async () => {
    const server = await startGoverned({ handlers: "priced" });
    await call(server.url, "reporting", { units: 6 });
    await call(server.url, "reporting", { units: 7 });
    await call(server.url, "metered", { units: 2 });
    await call(server.url, "metered", { units: 6 });
    const reader = await openReader({ config: ledgerConfig(), dataFolder: server.root });
    const rows = await reader.list({}, { limit: 10, order: "oldest" });
    await reader.close();
    expect(rows.map(({ name, cost_micros: micros, flags }) => [name, micros / 1e6, JSON.parse(flags)])).toEqual([
      ["reporting", 6, []],
      ["reporting", 7, []],
      ["metered", 3, []],
      ["metered", 7, ["over_max_cost"]],
    ]);
    await server.stop();
  });

  test("[004-R8.2] a month that is paid for is the end for a handler without a price that reports costs, too", async () => {
    const governance = { defaults: { monthlyBudget: 2 }, tools: { priced: { cost: 0, maxCost: 0 } } };
    const { url, stop } = await started({ governance, handlers: "priced" });
    expect((await rpc(url, "resources/read", { uri: "priced://report" })).body.result).toBeDefined();
    expect((await rpc(url, "prompts/get", { name: "question" })).body.result).toBeDefined();
    expect((await call(url, "reporting", { units: 0.5 })).body.result).toBeDefined();
    // Nobody knows before what it will report: the last one may pass the line.
    expect((await call(url, "reporting", { units: 1.5 })).body.result).toBeDefined();
    expect((await call(url, "reporting", { units: 1.5 })).body.error?.data).toMatchObject({
      rule: "defaults.monthlyBudget",
      reason: "budget",
      limit: 2,
      used: 3,
    });
    const rule = "defaults.monthlyBudget";
    expect((await rpc(url, "resources/read", { uri: "priced://report" })).body.error?.data).toMatchObject({ rule });
    expect((await rpc(url, "prompts/get", { name: "question" })).body.error?.data).toMatchObject({ rule });
    // What is said to cost nothing needs no money.
    expect((await call(url, "priced")).body.result).toBeDefined();
    await stop();
  });

  test("50 clients at once and money for 1,000 calls: exactly 1,000 pass", async () => {
    const defaults = { monthlyBudget: 1000, callsPerMinute: 0, callsPerDay: 0 };
    const { url, stop } = await started({ governance: { defaults }, handlers: "priced" });
    let left = 1100;
    const counts = { passed: 0, refused: 0 };
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        while (left-- > 0) {
          const { body } = await call(url, "priced");
          if (body.result === undefined) counts.refused += 1;
          else counts.passed += 1;
        }
      }),
    );
    expect(counts).toEqual({ passed: 1000, refused: 100 });
    await stop();
  });
});

test("what a killed server held is free again", async () => {
  const root = newFolder();
  const options = { root, governance: { defaults: { concurrency: 1 } } };
  const first = await startGoverned(options);
  let held: Promise<unknown> | undefined;
  // The question whether it is held may take the only place before it.
  const hold = (): Promise<unknown> =>
    (held ??= call(first.url, "hold", { label: "killed" })
      .catch(() => undefined)
      .finally(() => (held = undefined)));
  await until(
    async () => {
      void hold();
      return (await call(first.url, "echo", { text: "x" })).body.error?.data?.["rule"];
    },
    (rule) => rule === "defaults.concurrency",
  );
  first.child.kill("SIGKILL");
  await first.exit();
  const second = await startGoverned(options);
  expect((await call(second.url, "echo", { text: "x" })).body.result).toBeDefined();
  await second.stop();
});

describe("rules", () => {
  test("[004-R10.9] look at arguments, and each decision names its rule", async () => {
    const rules = [
      { id: "greet-ada", when: 'tool == "echo" && args.text == "ada"', effect: "allow" },
      { id: "short", when: 'tool == "echo" && size(args.text) > 3', effect: "deny", reason: "too long" },
    ];
    const { url, stop } = await started({ governance: { rules } });
    expect((await call(url, "echo", { text: "hi" })).body.result).toBeDefined();
    expect((await call(url, "echo", { text: "longer" })).body.error?.data).toMatchObject({
      rule: "rules.short",
      reason: "too long",
    });
    await stop();
  });

  test("[004-R8.8] a changed policy file is in force without a restart, and a broken one leaves the old", async () => {
    const policyFile = writeFile("live-policy.yaml", { defaults: { hidden: ["echo"] } });
    const server = await startGoverned({ governance: { policyFile } });
    const { url } = server;
    expect(await toolNames(url)).not.toContain("echo");
    writeFileSync(policyFile, "defaults: { hidden: [add] }");
    await until(
      () => toolNames(url),
      (names) => names.includes("echo") && !names.includes("add"),
    );
    writeFileSync(policyFile, "rules: [{ id: x, when: 'nonsense(', effect: deny }]");
    expect(await server.logged("policy refused, the old one stays in force")).toMatchObject({
      problems: [expect.stringContaining("rules[0] (x)")],
    });
    expect(await toolNames(url)).not.toContain("add");
    await server.stop();
  });
});

test("[004-R8.10] statistics: one's own, and everybody's for an operator", async () => {
  const { url, origin, stop } = await started({ hasAuth: true });
  const ada = await token("ada");
  await rpc(url, "tools/list", {}, { token: ada });
  await call(url, "echo", { text: "x" }, { token: ada });
  await call(url, "echo", { text: "x" }, { token: await token("bob") });
  const get = async (query: string, bearer: string) => {
    const answer = await fetch(`${origin}/api/stats${query}`, { headers: { authorization: `Bearer ${bearer}` } });
    return { status: answer.status, body: JSON.parse(await answer.text()) };
  };
  const own = await get("", ada);
  expect(own.body).toMatchObject({ total: { calls: 1 }, clients: [{ client: "ada" }], quota: { client: "ada" } });
  expect(own.body.tools).toMatchObject([{ tool: "echo", calls: 1 }]);
  expect((await get("?client=bob", ada)).status).toBe(403);
  const admin = await token("root", { scope: "owlclaw:admin" });
  expect((await get("", admin)).body.total.calls).toBeGreaterThanOrEqual(2);
  expect((await get("?client=bob", admin)).body).toMatchObject({
    total: { calls: 1 },
    quota: { client: "bob", per_minute: { limit: 600, remaining: 599 } },
  });
  await stop();
});

test("[004-R5.6] [004-R8.6] [004-R7.8] calls and reads are in the ledger with client, arguments, result, duration and cost", async () => {
  const tools = { echo: { cost: 0.25 } };
  const { url, origin, stop } = await started({ hasAuth: true, governance: { tools } });
  const ada = { token: await token("ada"), label: "cursor" };
  await call(url, "echo", { text: "hello" }, ada);
  await rpc(url, "resources/read", { uri: "fixture://greeting" }, ada);
  await call(url, "nothing", {}, ada);
  const admin = await token("root", { scope: "owlclaw:admin" });
  const answer = await fetch(`${origin}/api/ledger?client=ada`, { headers: { authorization: `Bearer ${admin}` } });
  const { rows } = (await answer.json()) as { rows: Record<string, unknown>[] };
  const common = { principal: "ada", label: "cursor", transport: "http", decision: "allow", rule: "default" };
  expect(rows).toMatchObject([
    { ...common, kind: "tool", name: "nothing", outcome: "failed", error_kind: "tool_not_found" },
    { ...common, kind: "resource", name: "fixture://greeting", outcome: "ok", cost_micros: 0 },
    { ...common, kind: "tool", name: "echo", outcome: "ok", cost_micros: 250_000 },
  ]);
  for (const { duration_us: micros, trace_id: trace } of rows) {
    expect(micros).toBeGreaterThan(0);
    expect(trace).toMatch(/^[0-9a-f]{32}$/);
  }
  const text = (row: number, column: string): string => JSON.stringify(rows[row]?.[column]);
  expect(text(2, "args")).toContain("hello");
  expect(text(2, "result")).toContain("hello");
  expect(text(1, "result")).not.toBe("null");
  await stop();
});

test("[004-R9.3] what is not there, or not allowed, has the codes -32001, -32002 and -32003, or those that the newest revision allows", async () => {
  const { url, origin, stop } = await started({ governance: { defaults: { deny: ["add"] } } });
  const wrong: readonly (readonly [string, Record<string, unknown>])[] = [
    ["tools/call", { name: "nothing", arguments: {} }],
    ["resources/read", { uri: "fixture://nothing" }],
    ["tools/call", { name: "add", arguments: { a: 1, b: 2 } }],
  ];
  const codes = async (ask: typeof rpc | typeof modern): Promise<unknown[]> =>
    Promise.all(wrong.map(async ([method, params]) => (await ask(url, method, params)).body.error?.code));
  expect(await codes(rpc)).toEqual([-32001, -32002, -32003]);
  expect(await codes(modern)).toEqual([-32602, -32602, -31003]);
  const session = await openSession(origin);
  const older = (at: string, method: string, params: Record<string, unknown> = {}) =>
    postJson(at, { jsonrpc: "2.0", id: 9, method, params }, { accept: BOTH, ...session });
  expect(await codes(older)).toEqual([-32001, -32002, -32003]);
  await stop();
});

async function started(options: Parameters<typeof startGoverned>[0] = {}) {
  const server = await startGoverned({ root: newFolder(), ...options });
  return { url: server.url, origin: server.origin, stop: () => server.stop() };
}
