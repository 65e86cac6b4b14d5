import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runCli } from "./cli-process.ts";
import { call, headersOf, rpc, startGoverned, token, writeFile } from "./governance-lab.ts";
import { until } from "./harness.ts";
import { modern, postJson } from "./http-client.ts";

let server: Awaited<ReturnType<typeof startGoverned>>;
let ada = "";
let admin = "";

beforeAll(async () => {
  const tools = { echo: { confirm: "operator" }, add: { confirm: "client" } };
  server = await startGoverned({ governance: { tools, approvalTimeoutSeconds: 20 }, hasAuth: true });
  ada = await token("ada", { scope: "owlclaw:admin" });
  admin = await token("root", { scope: "owlclaw:admin" });
});

afterAll(() => server.stop());

interface Waiting {
  readonly id: string;
  readonly principal: string;
  readonly name: string;
  readonly args: unknown;
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
    const approved = await runCli(["mcp-server", "approvals", "approve", approval?.id ?? "", "--config", config]);
    expect(approved.code).toBe(0);
    expect((await running).body.result).toMatchObject({ content: [{ text: "by hand" }] });
    const reason = ["--reason", "in\u2028two lines"];
    const unknown = await runCli(["mcp-server", "approvals", "deny", "0123", ...reason, "--config", config]);
    expect(unknown.err).toContain("no call waits under 0123");
  });
});

describe("a client's approval", () => {
  test("travels as input_required, and a decline is a no", async () => {
    const params = { name: "add", arguments: { a: 1, b: 2 } };
    const capabilities = { elicitation: {} };
    const headers = headersOf({ token: ada });
    const asked = await modern(server.url, "tools/call", params, { capabilities, headers });
    const [key = ""] = Object.keys(asked.body.result?.["inputRequests"] ?? {});
    expect(key).toMatch(/^owlclaw_approval_/);
    const { requestState } = asked.body.result ?? {};
    const answerWith = (action: object) =>
      modern(
        server.url,
        "tools/call",
        { ...params, requestState, inputResponses: { [key]: action } },
        { capabilities, headers },
      );
    expect((await answerWith({ action: "accept", content: { approve: true } })).body.result).toMatchObject({
      structuredContent: { sum: 3 },
    });
    expect((await answerWith({ action: "decline" })).body.error).toMatchObject({
      code: -31003,
      data: { rule: "tools.add.confirm" },
    });
  });

  test("cannot be given by a client that cannot be asked", async () => {
    const { body } = await rpc(server.url, "tools/call", { name: "add", arguments: { a: 1, b: 2 } }, { token: ada });
    expect(body.error?.data).toMatchObject({ kind: "governance_denied", rule: "tools.add.confirm" });
  });
});
