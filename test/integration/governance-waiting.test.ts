import { writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";
import { runCli } from "./cli-process.ts";
import { call, headersOf, startGoverned, token, writeFile } from "./governance-lab.ts";
import { until } from "./harness.ts";
import { postJson } from "./http-client.ts";

/** What becomes of calls while they wait for an operator's yes. */
let server: Awaited<ReturnType<typeof startGoverned>>;
let admin: Record<string, string>;

const TERMS = { tools: { plain: { confirm: "operator" } } };
const LOCAL = `local:${userInfo().username}`;
const policyFile = writeFile("waiting.yaml", TERMS);

beforeAll(async () => {
  server = await startGoverned({ handlers: "doors", governance: { policyFile }, hasAuth: true });
  admin = headersOf({ token: await token("root", { scope: "owlclaw:admin" }) });
});

afterAll(() => server.stop());

async function asks(principal: string): Promise<{ readonly id: string; readonly running: ReturnType<typeof call> }> {
  const running = call(server.url, "plain", { text: principal }, { token: await token(principal) });
  return { id: await idOf(principal), running };
}

function idOf(principal: string): Promise<string> {
  return until(
    async () => {
      const answer = await fetch(`${server.origin}/api/approvals`, { headers: admin });
      const { approvals } = (await answer.json()) as { approvals: { id: string; principal: string }[] };
      return approvals.find((each) => each.principal === principal)?.id ?? "";
    },
    (id) => id !== "",
  );
}

async function approve(id: string): Promise<void> {
  const answer = await postJson(`${server.origin}/api/approvals/${id}`, { decision: "approve" }, admin);
  expect(answer.status).toBe(200);
}

function cli(...args: string[]): ReturnType<typeof runCli> {
  const config = writeFile("waiting-cli.yaml", { sandbox: { root: server.root, enabled: false } });
  return runCli(["mcp-server", ...args, "--config", config]);
}

async function rowOf(client: string) {
  const reader = await openReader({ config: ledgerConfig(), dataFolder: server.root });
  const [row] = await reader.list({ principal: client }, { limit: 1 });
  await reader.close();
  return row;
}

test("a client that is paused meanwhile does not run, whoever says yes", async () => {
  const { id, running } = await asks("paused");
  expect((await cli("pause", "paused")).code).toBe(0);
  await approve(id);
  expect((await running).body.error?.data).toMatchObject({ kind: "paused", rule: "paused" });
  expect(await rowOf("paused")).toMatchObject({ outcome: "refused", rule: "paused" });
  expect((await cli("resume", "paused")).code).toBe(0);
});

describe("a policy that changes meanwhile", () => {
  afterEach(() => changeTo(TERMS));

  async function judgedBy(principal: string, policy: object) {
    const { id, running } = await asks(principal);
    const revision = await changeTo(policy);
    await approve(id);
    return { body: (await running).body, row: await rowOf(principal), revision };
  }

  test.each([
    ["denies it", { ...TERMS, defaults: { deny: ["plain"] } }, "defaults.deny"],
    [
      "has a rule against it",
      { ...TERMS, rules: [{ id: "no", when: "args.text == 'has a rule against it'", effect: "deny" }] },
      "rules.no",
    ],
  ])("and %s is the one that counts", async (name, policy, rule) => {
    const { body, row, revision } = await judgedBy(name, policy);
    expect(body.error?.data).toMatchObject({ kind: "governance_denied", rule, policy: revision });
    expect(row).toMatchObject({ outcome: "refused", rule, policy_revision: revision });
  });

  test("and still lets it run is named in its record", async () => {
    const { body, row, revision } = await judgedBy("lucky", { ...TERMS, defaults: { callsPerDay: 1000 } });
    expect(body.result).toBeDefined();
    expect(row).toMatchObject({ outcome: "ok", rule: "tools.plain.confirm", policy_revision: revision });
  });
});

/** Gives the revision when it is in force. */
async function changeTo(policy: object): Promise<string> {
  const changes = () => server.logs.filter(({ message }) => message === "policy changed");
  const before = changes().length;
  writeFileSync(policyFile, JSON.stringify(policy));
  const [last] = (await until(changes, ({ length }) => length > before)).slice(-1);
  return String(last?.["revision"]);
}

test("a call that its client gives up is cancelled, not refused", async () => {
  const gone = new AbortController();
  const headers = { ...headersOf({ token: await token("gone") }), "content-type": "application/json" };
  const params = { name: "plain", arguments: {} };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const lost = fetch(server.url, { method: "POST", headers, body, signal: gone.signal });
  await idOf("gone");
  gone.abort();
  await expect(lost).rejects.toThrow("aborted");
  const row = await until(
    () => rowOf("gone"),
    (found) => found !== undefined,
  );
  expect(row).toMatchObject({ outcome: "cancelled", error_kind: "cancelled", rule: "tools.plain.confirm" });
});

test("a token cannot speak for an operator on the command line", async () => {
  const { status, body } = await call(server.url, "plain", { text: LOCAL }, { token: await token(LOCAL) });
  expect([status, body.error?.data]).toMatchObject([401, { reason: "token_claims" }]);
});
