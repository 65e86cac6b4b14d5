import { renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";
import { runCli } from "./cli-process.ts";
import { call, newFolder, startGoverned, token, writeFile } from "./governance-lab.ts";
import { startHttp, until, writeConfig } from "./harness.ts";
import { BOTH, closeStreams, EventReader, plainCall } from "./http-client.ts";
import { SHOP, skillFolder } from "./skill-fixture.ts";
import { envelope, modernHeaders } from "./wire-messages.ts";

afterAll(() => closeStreams());

const COUNTER = "fixture://counter";

function listenTo(url: string, id: string, resources: readonly string[]): Promise<EventReader> {
  const params = envelope({ notifications: { resourcesListChanged: true, resourceSubscriptions: resources } });
  return EventReader.open(url, {
    method: "POST",
    headers: { accept: BOTH, "content-type": "application/json", ...modernHeaders("subscriptions/listen") },
    body: JSON.stringify({ jsonrpc: "2.0", id, method: "subscriptions/listen", params }),
  });
}

test("[004-R8.8] a policy that hides a resource ends what was told of it over a stream of 2026-07-28", async () => {
  const file = writeFile("hiding.yaml", {});
  const server = await startGoverned({ governance: { policyFile: file } });
  const listener = await listenTo(server.url, "sub", [COUNTER]);
  await listener.message(({ method }) => method === "notifications/subscriptions/acknowledged");
  await plainCall(server.url, "bump");
  await listener.message(({ method }) => method === "notifications/resources/updated");
  const told = listener.messages.length;
  writeFileSync(file, JSON.stringify({ defaults: { hidden: [COUNTER] } }));
  await listener.ended();
  await plainCall(server.url, "bump");
  expect(listener.messages.slice(told).filter(({ params }) => params?.["uri"] === COUNTER)).toEqual([]);
  expect((await listenTo(server.url, "again", [COUNTER])).response.headers.get("content-type")).toContain("json");
  await server.stop();
});

test("skill_search tells only of skills that the caller may see", async () => {
  const dir = skillFolder(SHOP);
  const governance = { defaults: { hidden: ["skill://ecommerce/refund*"] } };
  const config = { governance, skills: { dir }, sandbox: { root: newFolder(), enabled: false } };
  const server = await startHttp({ config });
  const { body } = await call(server.url, "skill_search", { query: "" });
  const found = body.result?.["structuredContent"] as { readonly skills: { uri: string }[]; readonly total: number };
  expect(found.skills.map(({ uri }) => uri).toSorted()).toEqual([
    "skill://ecommerce/returns/label",
    "skill://support/tone",
  ]);
  expect(found.total).toBe(2);
  expect(JSON.stringify(body.result)).not.toContain("refund");
  await server.stop();
});

describe("a policy whose pattern could be kept busy", () => {
  const refused = async (when: string): Promise<string> => {
    const root = newFolder();
    const governance = { rules: [{ id: "slow", when, effect: "deny" }] };
    const config = writeConfig({ config: { governance, sandbox: { root, enabled: false } } });
    return (await runCli(["mcp-server", "policy", "explain", "--client", "a", "--tool", "echo", "--config", config]))
      .err;
  };

  test("is refused when it is read", async () => {
    expect(await refused(`args.text.matches("(a+)+$")`)).toContain("could take for ever");
    expect(await refused(`args.text.matches(args.pattern)`)).toContain("written out, in quotes");
  });

  test("and a text too long for any pattern is refused with the reason", async () => {
    const rules = [{ id: "plain", when: `args.text.matches("b+$")`, effect: "deny" }];
    const server = await startGoverned({ governance: { rules } });
    expect((await call(server.url, "echo", { text: "a".repeat(9000) })).body.result).toBeDefined();
    const { body } = await call(server.url, "echo", { text: "a".repeat(10_001) });
    expect(body.error?.data).toMatchObject({ kind: "governance_denied", rule: "rules.plain" });
    expect(body.error?.message).toContain("too long for matches()");
    await server.stop();
  });
});

test("progress comes while an operator is waited for", async () => {
  const governance = { tools: { echo: { confirm: "operator" } }, approvalTimeoutSeconds: 20 };
  const server = await startGoverned({ governance, hasAuth: true });
  const [ada, admin] = await Promise.all([token("ada"), token("root", { scope: "owlclaw:admin" })]);
  const params = { name: "echo", arguments: { text: "please" } };
  const stream = await EventReader.open(server.url, {
    method: "POST",
    headers: {
      accept: BOTH,
      "content-type": "application/json",
      authorization: `Bearer ${ada}`,
      ...modernHeaders("tools/call", params),
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: envelope(params, {}, { progressToken: "t" }),
    }),
  });
  const progress = await stream.message(({ method }) => method === "notifications/progress");
  expect(progress.params).toMatchObject({ progressToken: "t", message: "waiting for an operator's approval for 0 s" });
  const headers = { authorization: `Bearer ${admin}`, "content-type": "application/json" };
  const list = await fetch(`${server.origin}/api/approvals`, { headers });
  const { approvals } = (await list.json()) as { approvals: { id: string }[] };
  const body = JSON.stringify({ decision: "approve" });
  await fetch(`${server.origin}/api/approvals/${approvals[0]?.id}`, { method: "POST", headers, body });
  expect((await stream.message(({ id }) => id === 1)).result).toMatchObject({ content: [{ text: "please" }] });
  await server.stop();
});

test.each([
  [true, { result: { content: [{ text: "after" }] } }],
  [false, { error: { data: { kind: "store_unavailable" } } }],
])("with failOpen: %s a call meets a ledger that is gone, and the operator is told", async (failOpen, expected) => {
  const server = await startGoverned({ governance: { failOpen } });
  expect((await call(server.url, "echo", { text: "before" })).body.result).toBeDefined();
  renameSync(path.join(server.root, "ledger.db"), path.join(server.root, "gone.db"));
  const { body } = await call(server.url, "echo", { text: "after" });
  expect(body).toMatchObject(expected);
  expect(await server.logged("the ledger cannot be written: calls are refused")).toMatchObject({ level: "error" });
  renameSync(path.join(server.root, "gone.db"), path.join(server.root, "ledger.db"));
  await until(
    async () => (await call(server.url, "echo", { text: "again" })).body.result,
    (result) => result !== undefined,
  );
  await server.stop();
});

describe("groups", () => {
  let root = "";
  let config = "";
  beforeAll(() => {
    root = newFolder();
    config = writeConfig({ config: { sandbox: { root, enabled: false } } });
  });

  test("are in the ledger with the call, so that replay knows them", async () => {
    const server = await startGoverned({ root, hasAuth: true });
    await call(server.url, "echo", { text: "x" }, { token: await token("ada", { groups: ["interns"] }) });
    await call(server.url, "echo", { text: "x" }, { token: await token("bob", { groups: ["staff"] }) });
    await server.stop();
    const reader = await openReader({ config: ledgerConfig(), dataFolder: root });
    const rows = await reader.list({ name: "echo" }, { limit: 10 });
    await reader.close();
    expect(rows.map(({ principal, flags }) => [principal, flags])).toEqual([
      ["bob", '["group:staff"]'],
      ["ada", '["group:interns"]'],
    ]);
    const candidate = writeFile("groups.yaml", { groups: { interns: { deny: ["echo"] } } });
    const argv = ["mcp-server", "policy", "replay", candidate, "--from", "1h", "--json", "--config", config];
    expect(JSON.parse((await runCli(argv)).out)).toMatchObject({
      replayed: 2,
      changes: [{ client: "ada", name: "echo", was: "allow", wouldBe: "deny" }],
    });
  });

  test("replay says of each call that depends on claims, or on what was cut or redacted, that it cannot know", async () => {
    const folder = newFolder();
    const server = await startGoverned({ root: folder, hasAuth: true });
    const eve = { token: await token("eve", { scope: "x" }) };
    await call(server.url, "echo", { text: "x" }, eve);
    await call(server.url, "echo", { text: "password=hunter22-and-more" }, eve);
    await call(server.url, "add", { a: 1, b: 2 }, eve);
    await server.stop();
    const rules = [
      { id: "claims", when: 'tool == "add" && claims.level == 3', effect: "deny" },
      { id: "words", when: 'tool == "echo" && args.text == "x"', effect: "deny" },
    ];
    const candidate = writeFile("claims.yaml", { rules });
    const own = writeConfig({ config: { sandbox: { root: folder, enabled: false } } });
    const argv = ["mcp-server", "policy", "replay", candidate, "--from", "1h", "--config", own];
    const { replayed, changes, unknown } = JSON.parse((await runCli([...argv, "--json"])).out);
    expect(replayed).toBe(3);
    expect(changes).toMatchObject([{ name: "echo", was: "allow", wouldBe: "deny", rule: "rules.words" }]);
    expect(unknown).toMatchObject([
      { name: "echo", was: "allow", dependsOn: "arguments" },
      { name: "add", was: "allow", dependsOn: "claims" },
    ]);
    const said = await runCli(argv);
    expect(said.out).toMatch(/allow → \?\s+depends on claims/);
    expect(said.err).toContain("1 of 3 calls would be decided otherwise. Of 2 nobody can say");
  }, 120_000);
});
