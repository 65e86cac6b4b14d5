import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { runCli } from "./cli-process.ts";
import { call, headersOf, rpc, startGoverned, token, writeFile } from "./governance-lab.ts";
import { until } from "./harness.ts";
import { closeStreams, HttpSession, modern, postJson } from "./http-client.ts";

let server: Awaited<ReturnType<typeof startGoverned>>;
let ada = "";
let admin = "";

beforeAll(async () => {
  const tools = { echo: { confirm: "operator" }, add: { confirm: "client" }, ask_name: { confirm: "client" } };
  server = await startGoverned({ governance: { tools, approvalTimeoutSeconds: 20 }, hasAuth: true });
  ada = await token("ada", { scope: "owlclaw:admin" });
  admin = await token("root", { scope: "owlclaw:admin" });
});

afterAll(() => server.stop());
afterEach(() => closeStreams());

interface Waiting {
  readonly id: string;
  readonly principal: string;
  readonly name: string;
  readonly args: unknown;
  readonly hash: string;
}

async function waiting(count = 1): Promise<readonly Waiting[]> {
  return until(
    async () => {
      const answer = await fetch(`${server.origin}/api/approvals`, { headers: headersOf({ token: admin }) });
      return ((await answer.json()) as { approvals: Waiting[] }).approvals;
    },
    (approvals) => approvals.length === count,
  );
}

async function decide(id: string, decision: "approve" | "deny", as: string, reason = ""): Promise<number> {
  const answer = await postJson(`${server.origin}/api/approvals/${id}`, { decision, reason }, headersOf({ token: as }));
  return answer.status;
}

describe("an operator's approval", () => {
  test("lets the waiting call run, never by the caller itself", async () => {
    const running = call(server.url, "echo", { text: "please" }, { token: ada });
    const [approval] = await waiting();
    expect(approval).toMatchObject({ principal: "ada", name: "echo", args: { text: "please" } });
    const id = approval?.id ?? "";
    expect(await decide(id, "approve", ada)).toBe(403);
    expect(await decide(id, "approve", await token("bob"))).toBe(403);
    expect(await decide(id, "approve", admin)).toBe(200);
    expect((await running).body.result).toMatchObject({ content: [{ text: "please" }] });
    expect(await decide(id, "approve", admin)).toBe(404);
  });

  test("is refused with the operator's reason", async () => {
    const running = call(server.url, "echo", { text: "no" }, { token: ada });
    const [approval] = await waiting();
    await decide(approval?.id ?? "", "deny", admin, "not today");
    expect((await running).body.error).toMatchObject({
      code: -32003,
      data: { kind: "governance_denied", rule: "tools.echo.confirm", reason: expect.stringContaining("not today") },
    });
  });

  test("is given on the command line of the same machine", async () => {
    const running = call(server.url, "echo", { text: "by hand" }, { token: ada });
    await waiting();
    const config = writeFile("cli.yaml", { sandbox: { root: server.root, enabled: false } });
    const list = await runCli(["mcp-server", "approvals", "list", "--json", "--config", config]);
    const { approvals }: { readonly approvals: readonly Waiting[] } = JSON.parse(list.out);
    const [approval] = approvals;
    expect(approval).toMatchObject({ principal: "ada", args: { text: "by hand" } });
    const hash = ["--hash", approval?.hash ?? ""];
    const approved = await runCli([
      "mcp-server",
      "approvals",
      "approve",
      approval?.id ?? "",
      ...hash,
      "--config",
      config,
    ]);
    expect(approved.code).toBe(0);
    expect((await running).body.result).toMatchObject({ content: [{ text: "by hand" }] });
    const reason = ["--reason", "in\u2028two lines"];
    const unknown = await runCli(["mcp-server", "approvals", "deny", "0123", ...reason, "--config", config]);
    expect(unknown.err).toContain("no call waits under 0123");
  });
});

const ADD = { name: "add", arguments: { a: 1, b: 2 } };
const YES = { action: "accept", content: { approve: true } };

function callModern(params: Record<string, unknown>): ReturnType<typeof modern> {
  return modern(server.url, "tools/call", params, {
    capabilities: { elicitation: {} },
    headers: headersOf({ token: ada }),
  });
}

/** The question of a call, and how to answer it. */
async function asked(params: Record<string, unknown>) {
  const { body } = await callModern(params);
  expect(body.result).toMatchObject({ resultType: "input_required" });
  const [key = ""] = Object.keys(body.result?.["inputRequests"] ?? {});
  const requestState: unknown = body.result?.["requestState"];
  const answer = (action: object) => callModern({ ...params, requestState, inputResponses: { [key]: action } });
  return { key, requestState, answer };
}

describe("a client's approval", () => {
  test("travels as input_required, and a decline is a no", async () => {
    const { key, answer } = await asked(ADD);
    expect(key).toMatch(/^owlclaw_approval_/);
    expect((await answer(YES)).body.result).toMatchObject({ structuredContent: { sum: 3 } });
    const { answer: answerAgain } = await asked(ADD);
    expect((await answerAgain({ action: "decline" })).body.error).toMatchObject({
      code: -31003,
      data: { rule: "tools.add.confirm" },
    });
  });

  test("is good for one call: sent again, the question is put again", async () => {
    const { key, answer } = await asked(ADD);
    const answers = await Promise.all([answer(YES), answer(YES), answer(YES)]);
    const kinds = answers.map(({ body }) => body.result?.["resultType"]);
    expect(kinds.filter((kind) => kind === "complete")).toHaveLength(1);
    expect(kinds.filter((kind) => kind === "input_required")).toHaveLength(2);
    const late = (await answer(YES)).body.result;
    expect(Object.keys(late?.["inputRequests"] ?? {})).toEqual([key]);
  });

  test("is not taken from a client that was not asked", async () => {
    const { key } = await asked(ADD);
    const forged = await callModern({ ...ADD, inputResponses: { [key]: YES } });
    expect(forged.body.result).toMatchObject({ resultType: "input_required" });
    // What was not asked for must not come in with the state of the next round either.
    const requestState: unknown = forged.body.result?.["requestState"];
    expect((await callModern({ ...ADD, requestState })).body.result).toMatchObject({ resultType: "input_required" });
  });

  test("does not come back with what the call itself asks next", async () => {
    const params = { name: "ask_name", arguments: {} };
    const { answer } = await asked(params);
    const named = (await answer(YES)).body.result;
    const [question = ""] = Object.keys(named?.["inputRequests"] ?? {});
    expect(question).not.toMatch(/^owlclaw_approval_/);
    const inputResponses = { [question]: { action: "accept", content: { name: "Ada" } } };
    const last = { ...params, requestState: named?.["requestState"], inputResponses };
    expect((await callModern(last)).body.result).toMatchObject({ resultType: "complete" });
    const again = (await callModern(last)).body.result;
    expect(Object.keys(again?.["inputRequests"] ?? {})).toEqual([expect.stringMatching(/^owlclaw_approval_/)]);
  });

  test("is asked by elicitation while the call runs, in 2025-11-25", async () => {
    const open = await startGoverned({ governance: { tools: { add: { confirm: "client" } } } });
    try {
      const session = await HttpSession.open(open.url, { capabilities: { elicitation: {} } });
      const outcomeAfter = async (id: number, answer: object) => {
        const running = await session.open({ jsonrpc: "2.0", id, method: "tools/call", params: ADD });
        const question = await running.message(({ method }) => method === "elicitation/create");
        expect(question.params).toMatchObject({ message: expect.stringContaining('tool "add"') });
        await session.send({ jsonrpc: "2.0", id: question.id, result: answer });
        return running.message((message) => message.id === id && message.method === undefined);
      };
      expect((await outcomeAfter(11, YES)).result).toMatchObject({ structuredContent: { sum: 3 } });
      for (const [id, answer] of [
        [12, { action: "decline" }],
        [13, { action: "accept", content: { approve: false } }],
      ] as const) {
        expect((await outcomeAfter(id, answer)).error?.data).toMatchObject({
          kind: "governance_denied",
          rule: "tools.add.confirm",
        });
      }
    } finally {
      await open.stop();
    }
  });

  test("cannot be given by a client that cannot be asked", async () => {
    const { body } = await rpc(server.url, "tools/call", ADD, { token: ada });
    expect(body.error?.data).toMatchObject({ kind: "governance_denied", rule: "tools.add.confirm" });
  });
});
