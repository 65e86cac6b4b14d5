import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type As, headersOf, newFolder, SECRET, token } from "./governance-lab.ts";
import { type HttpServer, startHttp } from "./harness.ts";
import { modern } from "./http-client.ts";
import { SHOP, skillFolder } from "./skill-fixture.ts";
import { TASKS_EXTENSION } from "./wire-messages.ts";

/** Doors that are no call of a tool, and still go the way of a call. */
let server: HttpServer;
let admin: As;

const REFUND = "skill://ecommerce/refund";
const MANIFEST = `${REFUND}/SKILL.md`;

beforeAll(async () => {
  const governance = {
    clients: { limited: { callsPerMinute: 2 }, asked: { confirm: { "skill://*": "client" } } },
    rules: [{ id: "no-tone", when: 'has(args.uri) && args.uri.contains("tone")', effect: "deny" }],
  };
  server = await startHttp({
    config: {
      auth: { enabled: true, jwt: { secret: SECRET } },
      skills: { dir: skillFolder(SHOP) },
      sandbox: { root: newFolder(), enabled: false },
      governance,
    },
  });
  admin = { token: await token("root", { scope: "owlclaw:admin" }) };
});

afterAll(() => server.stop());

async function ask(client: string, method: string, params: Record<string, unknown> = {}) {
  const headers = headersOf({ token: await token(client) });
  const capabilities = { elicitation: {}, extensions: { [TASKS_EXTENSION]: {} } };
  return (await modern(server.url, method, params, { capabilities, headers })).body;
}

async function rowsOf(client: string): Promise<readonly unknown[]> {
  const answer = await fetch(`${server.origin}/api/ledger?client=${client}`, { headers: headersOf(admin) });
  const { rows }: { readonly rows: readonly Record<string, unknown>[] } = JSON.parse(await answer.text());
  return rows.map(({ kind, name, called_as: calledAs, outcome, rule }) => [kind, name, calledAs, outcome, rule]);
}

describe("the skills extension", () => {
  test("leaves a row for each skill and folder that is read, and for the list", async () => {
    await ask("ada", "skills/list");
    expect((await ask("ada", "skills/get", { uri: MANIFEST })).result).toMatchObject({ skill: { uri: MANIFEST } });
    expect((await ask("ada", "resources/directory/read", { uri: REFUND })).error).toBeUndefined();
    expect((await ask("ada", "skills/get", { uri: "skill://no/such/SKILL.md" })).error?.code).toBe(-32602);
    expect((await ask("ada", "resources/directory/read", { uri: "skill://no" })).error?.code).toBe(-32602);
    expect((await rowsOf("ada")).toReversed()).toEqual([
      ["list", "skills/list", "skills/list", "ok", "default"],
      ["resource", REFUND, "skills/get", "ok", "default"],
      ["resource", REFUND, "resources/directory/read", "ok", "default"],
      ["resource", "skill://no/such/SKILL.md", "skills/get", "failed", "default"],
      ["resource", "skill://no", "resources/directory/read", "failed", "default"],
    ]);
  });

  test("is limited like every read", async () => {
    await ask("limited", "skills/get", { uri: MANIFEST });
    await ask("limited", "resources/directory/read", { uri: REFUND });
    for (const [method, uri] of [
      ["skills/get", MANIFEST],
      ["resources/directory/read", REFUND],
      ["resources/read", MANIFEST],
    ] as const)
      expect((await ask("limited", method, { uri })).error?.data).toMatchObject({
        kind: "governance_denied",
        rule: "clients.limited.callsPerMinute",
      });
  });

  test("meets the rules, and a yes that is needed", async () => {
    for (const [method, uri] of [
      ["skills/get", "skill://support/tone/SKILL.md"],
      ["resources/directory/read", "skill://support/tone"],
    ] as const)
      expect((await ask("bob", method, { uri })).error?.data).toMatchObject({ rule: "rules.no-tone" });
    for (const [method, uri] of [
      ["skills/get", MANIFEST],
      ["resources/directory/read", REFUND],
    ] as const)
      expect((await ask("asked", method, { uri })).error?.data).toMatchObject({ rule: "clients.asked.confirm" });
  });
});

describe("calls that do not come to their end", () => {
  test("are in the ledger: cancelled by the client, by a task's end, and timed out", async () => {
    const headers = { ...headersOf({ token: await token("cora") }), "content-type": "application/json" };
    const message = {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "hold", arguments: { label: "gone" } },
    };
    const gone = new AbortController();
    const lost = fetch(server.url, { method: "POST", headers, body: JSON.stringify(message), signal: gone.signal });
    const observe = async () =>
      (await ask("watcher", "tools/call", { name: "observe", arguments: { label: "gone" } })).result;
    await expect.poll(observe, { timeout: 30_000 }).toMatchObject({ structuredContent: { started: true } });
    gone.abort();
    await expect(lost).rejects.toThrow("aborted");
    const job = (await ask("cora", "tools/call", { name: "job", arguments: { label: "ended" } })).result?.["taskId"];
    await ask("cora", "tasks/cancel", { taskId: job });
    await ask("cora", "tools/call", { name: "dawdle", arguments: {} });
    const ends = async () =>
      (await rowsOf("cora")).flatMap((row) => (Array.isArray(row) && row[0] === "tool" ? [[row[1], row[3]]] : []));
    await expect
      .poll(async () => (await ends()).toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)), { timeout: 30_000 })
      .toEqual([
        ["dawdle", "timeout"],
        ["hold", "cancelled"],
        ["job", "cancelled"],
      ]);
  });
});

describe("tasks", () => {
  test("that are refused leave no row but the refusal's own, however many there are", async () => {
    for (let asked = 0; asked < 6; asked += 1)
      await ask("limited", "tools/call", { name: "only_as_task", arguments: {} });
    const tasks = (await rowsOf("limited")).filter((row) => Array.isArray(row) && row[0] !== "resource");
    expect(tasks.every((row) => Array.isArray(row) && row[3] === "refused")).toBe(true);
  });

  test("leave a row when they are answered or cancelled, one a minute when they are looked at, and none for what does nothing", async () => {
    const begun = await ask("tim", "tools/call", { name: "only_as_task", arguments: {} });
    const taskId: unknown = begun.result?.["taskId"];
    await expect
      .poll(async () => (await ask("tim", "tasks/get", { taskId })).result?.["status"], { timeout: 30_000 })
      .toBe("input_required");
    const go = { go: { action: "accept", content: { go: true } } };
    await ask("tim", "tasks/update", { taskId, inputResponses: go });
    await ask("tim", "tasks/update", { taskId, inputResponses: go });
    const job = (await ask("tim", "tools/call", { name: "job", arguments: { label: "doors" } })).result?.["taskId"];
    expect((await ask("eve", "tasks/cancel", { taskId: job })).error?.message).toContain("there is no task");
    await ask("tim", "tasks/cancel", { taskId: job });
    await ask("tim", "tasks/cancel", { taskId: job });
    const rows = await rowsOf("tim");
    expect(rows.filter((row) => Array.isArray(row) && row[0] === "task")).toEqual([
      ["task", "tasks/cancel", "tasks/cancel", "ok", "default"],
      ["task", "tasks/create", "tasks/create", "ok", "default"],
      ["task", "tasks/update", "tasks/update", "ok", "default"],
      ["task", "tasks/get", "tasks/get", "ok", "default"],
      ["task", "tasks/create", "tasks/create", "ok", "default"],
    ]);
    // Whoever tries ids of others is on record.
    expect(await rowsOf("eve")).toEqual([["task", "tasks/cancel", "tasks/cancel", "refused", "default"]]);
  });
});
