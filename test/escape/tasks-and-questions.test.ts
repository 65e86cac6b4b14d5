import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { runCli } from "../integration/cli-process.ts";
import { startGoverned, writeFile } from "../integration/governance-lab.ts";
import { until } from "../integration/harness.ts";
import { modern } from "../integration/http-client.ts";
import { TASKS_EXTENSION, text } from "../integration/wire-messages.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";
import { renameSync, writeFileSync } from "node:fs";

/** A client that goes on with a task it may not go on with, and one that gets work done by never answering. */
const CAPABILITIES = { extensions: { [TASKS_EXTENSION]: {} }, elicitation: {} };

let server: Awaited<ReturnType<typeof startGoverned>>;
const policyFile = writeFile("policy.yaml", "{}");

beforeAll(async () => {
  const governance = { policyFile, defaults: { monthlyBudget: 1000, callsPerMinute: 100_000 } };
  server = await startGoverned({ governance, handlers: "questions" });
});
afterAll(() => server.stop());

type Answer = Awaited<ReturnType<typeof modern>>["body"];

async function ask(method: string, params: Record<string, unknown>): Promise<Answer> {
  return (await modern(server.url, method, params, { capabilities: CAPABILITIES })).body;
}

async function begin(label?: string): Promise<string> {
  const args = label === undefined ? {} : { label };
  const { result } = await ask("tools/call", { name: "job", arguments: args });
  const taskId = String(result?.["taskId"]);
  await until(
    () => ask("tasks/get", { taskId }),
    (answer) => answer.result?.["status"] === "input_required",
  );
  return taskId;
}

const ANSWERED = { go: { action: "accept", content: { go: true } } };

/** Sets the rules, and waits until a call meets the probe among them, or no probe where there are none. */
async function setPolicy(id: string | undefined, policy: Readonly<Record<string, unknown>> = {}): Promise<void> {
  const probe = { id, when: 'tool == "research" && args.topic == "probe"', effect: "deny" };
  const rules = id === undefined ? [] : [probe, ...[policy["rules"] ?? []].flat()];
  writeFileSync(`${policyFile}.next`, JSON.stringify({ ...policy, rules }));
  renameSync(`${policyFile}.next`, policyFile);
  await until(
    async () => JSON.stringify(await ask("tools/call", { name: "research", arguments: { topic: "probe" } })),
    (answer) => answer.includes(id === undefined ? "requestState" : `rules.${id}`),
  );
}

const switched = async (...args: readonly string[]): Promise<void> => {
  expect(await runCli(["mcp-server", ...args], { env: { SANDBOX_ROOT: server.root } })).toMatchObject({ code: 0 });
};

async function rowsOf(name: string): Promise<readonly { readonly outcome: string; readonly rule: string }[]> {
  const reader = await openReader({ config: ledgerConfig(), dataFolder: server.root });
  const rows = await reader.list({ name }, { limit: 100 });
  await reader.close();
  return rows;
}

describe("a task", () => {
  test("of a paused client is neither read nor answered, and may be cancelled", async () => {
    const [taskId, other] = [await begin(), await begin()];
    await switched("pause", "--all");
    try {
      expect((await ask("tasks/get", { taskId })).error?.data).toMatchObject({ kind: "paused" });
      const answered = await ask("tasks/update", { taskId, inputResponses: ANSWERED });
      expect(answered.error?.data).toMatchObject({ kind: "paused" });
      expect((await ask("tasks/cancel", { taskId: other })).error).toBeUndefined();
    } finally {
      await switched("resume", "--all");
    }
    expect((await ask("tasks/get", { taskId })).result).toMatchObject({ status: "input_required" });
    expect((await ask("tasks/get", { taskId: other })).result).toMatchObject({ status: "cancelled" });
    expect((await rowsOf("tasks/get")).filter(({ outcome }) => outcome === "refused")).toMatchObject([
      { rule: "paused" },
    ]);
  });

  test("of a tool, or with arguments, that were denied since is neither read nor answered", async () => {
    const [taskId, other] = [await begin("secret"), await begin("open")];
    const rule = { id: "no-secret", when: 'tool == "job" && args.label == "secret"', effect: "deny" };
    await setPolicy("probe-1", { rules: [rule] });
    expect((await ask("tasks/get", { taskId })).error?.data).toMatchObject({ kind: "governance_denied" });
    const answered = await ask("tasks/update", { taskId, inputResponses: ANSWERED });
    expect(answered.error?.data).toMatchObject({ kind: "governance_denied", rule: "rules.no-secret" });
    expect((await ask("tasks/update", { taskId: other, inputResponses: ANSWERED })).error).toBeUndefined();
    await setPolicy("probe-2", { defaults: { deny: ["job"] } });
    expect((await ask("tasks/get", { taskId: other })).error?.data).toMatchObject({ kind: "governance_denied" });
    await setPolicy(undefined);
    expect((await ask("tasks/get", { taskId })).result).toMatchObject({ status: "input_required" });
  });
});

interface Round {
  readonly state: unknown;
  readonly asked: readonly string[];
  readonly text: string | undefined;
}

async function research(topic: string, more: Record<string, unknown> = {}): Promise<Round> {
  const answer = await ask("tools/call", { name: "research", arguments: { topic }, ...more });
  const { result } = answer;
  return { state: result?.["requestState"], asked: Object.keys(result?.["inputRequests"] ?? {}), text: text(answer) };
}

async function spent(): Promise<number> {
  const reader = await openReader({ config: ledgerConfig(), dataFolder: server.root });
  const rows = await reader.list({ name: "research" }, { limit: 1000 });
  await reader.close();
  return rows.reduce((sum, { cost_micros }) => sum + cost_micros, 0) / 1e6;
}

const YES = { action: "accept", content: { go: true } };

describe("a handler's question", () => {
  test("is paid for when the client never answers", async () => {
    const before = await spent();
    for (let n = 0; n < 5; n += 1) expect((await research(`unanswered ${n}`)).asked).toEqual(["first"]);
    expect((await spent()) - before).toBe(10);
  });

  test("is paid for once when the client answers, over two rounds", async () => {
    const before = await spent();
    const first = await research("answered");
    const second = await research("answered", { requestState: first.state, inputResponses: { first: YES } });
    expect(second.asked).toEqual(["second"]);
    const done = await research("answered", { requestState: second.state, inputResponses: { second: YES } });
    expect(done.text).toBe("answered accept accept");
    expect((await spent()) - before).toBe(2);
  });

  test("takes one answer for each state: a state that was used asks and costs again", async () => {
    const first = await research("twice");
    const answers = { requestState: first.state, inputResponses: { first: YES } };
    expect((await research("twice", answers)).asked).toEqual(["second"]);
    const before = await spent();
    for (let n = 0; n < 3; n += 1) expect((await research("twice", answers)).asked).toEqual(["first"]);
    expect((await spent()) - before).toBe(6);
  });

  test("of two calls with one state at the same time, one is answered", async () => {
    const first = await research("race");
    const answers = { requestState: first.state, inputResponses: { first: YES } };
    const rounds = await Promise.all(Array.from({ length: 8 }, () => research("race", answers)));
    expect(rounds.filter(({ asked }) => asked[0] === "second")).toHaveLength(1);
  });

  test("that was not asked is not answered by a state, and an answer in the first request saves nothing", async () => {
    const first = await research("ahead");
    const ahead = await research("ahead", { requestState: first.state, inputResponses: { first: YES, second: YES } });
    expect(ahead.asked).toEqual(["second"]);
    const before = await spent();
    const done = await research("early", { inputResponses: { first: YES, second: YES } });
    expect(done.text).toBe("early accept accept");
    expect((await spent()) - before).toBe(2);
  });
});
