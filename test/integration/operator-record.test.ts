import { afterAll, beforeAll, expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";
import { runCli } from "./cli-process.ts";
import { call, headersOf, startGoverned, token, writeFile } from "./governance-lab.ts";
import { until } from "./harness.ts";
import { postJson } from "./http-client.ts";

interface Waiting {
  readonly id: string;
}

let server: Awaited<ReturnType<typeof startGoverned>>;
let ada: { readonly token: string };
let admin: { readonly token: string };

beforeAll(async () => {
  server = await startGoverned({ governance: { tools: { echo: { confirm: "operator" } } }, hasAuth: true });
  ada = { token: await token("ada") };
  admin = { token: await token("root", { scope: "owlclaw:admin" }) };
});
afterAll(() => server.stop());

async function waitingId(): Promise<string> {
  const [approval] = await until(
    async () => {
      const answer = await fetch(`${server.origin}/api/approvals`, { headers: headersOf(admin) });
      return ((await answer.json()) as { readonly approvals: readonly Waiting[] }).approvals;
    },
    ({ length }) => length === 1,
  );
  return approval?.id ?? "";
}

async function recorded(name: string): Promise<{ readonly transport: string; readonly principal: string }[]> {
  const reader = await openReader({ config: ledgerConfig(), dataFolder: server.root });
  const rows = await reader.list({ name }, { limit: 10 });
  await reader.close();
  return rows.map(({ transport, principal }) => ({ transport, principal }));
}

test("what operators do is recorded with the way that it came: over HTTP, or on the machine", async () => {
  const first = call(server.url, "echo", { text: "over HTTP" }, ada);
  await postJson(`${server.origin}/api/approvals/${await waitingId()}`, { decision: "approve" }, headersOf(admin));
  expect((await first).body.result).toBeDefined();
  expect(await recorded("approval.approve")).toEqual([{ transport: "http", principal: "root" }]);

  const second = call(server.url, "echo", { text: "by hand" }, ada);
  const id = await waitingId();
  const config = writeFile("operator.yaml", { sandbox: { root: server.root, enabled: false } });
  await runCli(["mcp-server", "approvals", "deny", id, "--config", config]);
  expect((await second).body.error).toBeDefined();
  expect(await recorded("approval.deny")).toEqual([{ transport: "local", principal: expect.any(String) }]);
});

test("when two operators decide one call at once, one does, and nothing is on record of the other", async () => {
  const other = { token: await token("other", { scope: "owlclaw:admin" }) };
  for (let round = 0; round < 3; round += 1) {
    const running = call(server.url, "echo", { text: `round ${round}` }, ada);
    const id = await waitingId();
    const decide = (decision: string, as: typeof other): ReturnType<typeof postJson> =>
      postJson(`${server.origin}/api/approvals/${id}`, { decision }, headersOf(as));
    const answers = await Promise.all([decide("approve", admin), decide("deny", other)]);
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 404]);
    const isApproved = answers[0]?.status === 200;
    expect((await running).body.result !== undefined).toBe(isApproved);
    const reader = await openReader({ config: ledgerConfig(), dataFolder: server.root });
    const rows = (await reader.list({ text: id }, { limit: 10 })).map(({ name, outcome }) => ({ name, outcome }));
    await reader.close();
    expect(rows).toEqual([{ name: isApproved ? "approval.approve" : "approval.deny", outcome: "ok" }]);
  }
});
