import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";
import { call, rpc, startGoverned, withoutLedger } from "./governance-lab.ts";
import { modern } from "./http-client.ts";
import { type JsonRpcAnswer, TASKS_EXTENSION } from "./wire-messages.ts";

/** What cannot be recorded does not leave, through any door. */
let server: Awaited<ReturnType<typeof startGoverned>>;

const UNRECORDED = { error: { data: { kind: "store_unavailable" } } };

beforeAll(async () => {
  const defaults = { callsPerMinute: 10_000, concurrency: 100 };
  server = await startGoverned({ handlers: "doors", governance: { defaults } });
});

afterAll(() => server.stop());

/** A server that knows of it refuses at the door: each asks one that does not. */
async function askBroken<T>(ask: () => Promise<T>): Promise<T> {
  const answer = await withoutLedger(server.root, ask);
  expect((await call(server.url, "plain")).body.result).toBeDefined();
  return answer;
}

async function tasks(method: string, params: Record<string, unknown>): Promise<JsonRpcAnswer> {
  const capabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  return (await modern(server.url, method, params, { capabilities })).body;
}

async function rows(name: string) {
  const reader = await openReader({ config: ledgerConfig(), dataFolder: server.root });
  const found = await reader.list({ name }, { limit: 100 });
  await reader.close();
  return found;
}

describe.each([
  ["at once", "job"],
  ["by its handler", "late_job"],
])("a task that begins %s", (_when, name) => {
  test("is on record before it is answered, with what it is to do", async () => {
    const args = { text: `for the record of ${name}` };
    const { result } = await tasks("tools/call", { name, arguments: args });
    expect(result).toMatchObject({ resultType: "task", status: "working" });
    expect((await rows("tasks/create")).map((row) => row.args)).toContainEqual(
      JSON.stringify({ task_id: result?.["taskId"], tool: name, arguments: args }),
    );
    await tasks("tasks/cancel", { taskId: result?.["taskId"] });
  });

  test("is not answered when it cannot be recorded", async () => {
    expect(await askBroken(() => tasks("tools/call", { name, arguments: {} }))).toMatchObject(UNRECORDED);
  });
});

test("a list that is asked for twice at once is answered to nobody when it cannot be recorded", async () => {
  const list = async () => (await rpc(server.url, "resources/templates/list")).body;
  for (const answer of await askBroken(() => Promise.all([list(), list(), list()])))
    expect(answer).toMatchObject(UNRECORDED);
  expect((await list()).result).toBeDefined();
});

describe("a call that ran and failed with an error of governance's own kinds", () => {
  const ASKED = ["store_unavailable", "governance_denied", "paused"];

  test("is no refusal: each is on record, allowed and paid for", async () => {
    for (const kind of [...ASKED, ...ASKED]) await call(server.url, "unlucky", { kind });
    const found = (await rows("unlucky")).map(({ outcome, decision, rule, error_kind, cost_micros, count }) => {
      return { outcome, decision, rule, error_kind, cost_micros, count };
    });
    const ran = { outcome: "failed", decision: "allow", rule: "default", cost_micros: 1_000_000, count: 1 };
    const wanted = [...ASKED, ...ASKED].toReversed().map((error_kind) => ({ ...ran, error_kind }));
    expect(found).toEqual(wanted);
  });

  test.each(ASKED)("is not answered when it cannot be recorded (%s)", async (kind) => {
    const { body } = await askBroken(() => call(server.url, "unlucky", { kind }));
    expect(JSON.stringify(body)).not.toContain("somebody else");
    expect(body).toMatchObject(UNRECORDED);
  });
});

describe("a call that failed tells what is left, as one that did not", () => {
  const LEFT = { per_minute: { limit: 10_000, remaining: expect.any(Number) } };

  test("in the error", async () => {
    const { body, headers } = await call(server.url, "unlucky", { kind: "paused" });
    expect(body.error?.data).toMatchObject({ kind: "paused", quota: LEFT });
    expect(headers.get("ratelimit")).toContain('"minute";r=');
    expect((await call(server.url, "no_such_tool")).body.error?.data).toMatchObject({ quota: LEFT });
  });

  test("in the result, where the failure is one", async () => {
    const { body, headers } = await modern(server.url, "tools/call", { name: "plain", arguments: { text: 1 } });
    expect(body.result).toMatchObject({ isError: true, _meta: { "owlclaw/quota": LEFT } });
    expect(headers.get("ratelimit")).toContain('"minute";r=');
  });
});
