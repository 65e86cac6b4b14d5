import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, rpc, startGoverned, token, toolNames } from "../integration/governance-lab.ts";
import { modern, postJson } from "../integration/http-client.ts";
import { TASKS_EXTENSION } from "../integration/wire-messages.ts";

/** Everything that ada may not know of, and every door that could still tell her. */
let server: Awaited<ReturnType<typeof startGoverned>>;
let ada: { readonly token: string };

beforeAll(async () => {
  const hidden = [
    "secret_*",
    "echo",
    "hold*",
    "list",
    "fixture://greeting",
    "fixture://counter",
    "orders://*",
    "prompt:review",
  ];
  const clients = { ada: { hidden }, cora: { hidden: ["fixture://orders/emea/42"] } };
  server = await startGoverned({ governance: { clients }, hasAuth: true });
  ada = { token: await token("ada") };
});

afterAll(() => server.stop());

const DENIED = { kind: "governance_denied", rule: "clients.ada.hidden" };

describe("what is hidden", () => {
  test("is in no list", async () => {
    expect(await toolNames(server.url, ada)).not.toContain("echo");
    const capabilities = (await rpc(server.url, "mcp.capabilities", {}, ada)).text;
    const resources = (await rpc(server.url, "resources/list", {}, ada)).text;
    const templates = (await rpc(server.url, "resources/templates/list", {}, ada)).text;
    const prompts = (await rpc(server.url, "prompts/list", {}, ada)).text;
    for (const text of [capabilities, resources, templates, prompts])
      expect(text).not.toMatch(/"echo"|fixture:\/\/greeting|orders:|"review"/);
    const bob = { token: await token("bob") };
    expect((await rpc(server.url, "resources/list", {}, bob)).text).toContain("fixture://greeting");
  });

  test("is refused in the same words whether it is there or not, and before its arguments are looked at", async () => {
    const there = await call(server.url, "hold", { nonsense: true }, ada);
    const notThere = await call(server.url, "hold_nothing", { nonsense: true }, ada);
    const plain = (text: string): string =>
      text.replaceAll("hold_nothing", "hold").replaceAll(/"(trace_id|id)":("[^"]*"|\d+)/g, "");
    expect(plain(there.text)).toBe(plain(notThere.text));
    expect(there.body.error?.data).toMatchObject(DENIED);
  });

  test("is suggested for no variable of a template", async () => {
    const suggested = async (who: string, uri: string): Promise<unknown> => {
      const ref = { type: "ref/resource", uri };
      const params = { ref, argument: { name: "id", value: "4" }, context: { arguments: { region: "emea" } } };
      const { body } = await rpc(server.url, "completion/complete", params, { token: await token(who) });
      return body.result?.["completion"].values;
    };
    for (const uri of ["fixture://orders/{region}/{id}", "fixture://orders/emea/7"]) {
      expect(await suggested("bob", uri)).toEqual(["41", "42"]);
      expect(await suggested("cora", uri)).toEqual(["41"]);
    }
  });

  test("is refused in a batch, in every revision, and as a task", async () => {
    const one = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo", arguments: { text: "x" } } };
    const headers = { authorization: `Bearer ${ada.token}` };
    const batch = await postJson(server.url, [one, { ...one, id: 2 }], headers);
    expect((batch.body as unknown as (typeof batch.body)[]).map(({ error }) => error?.data)).toMatchObject([
      DENIED,
      DENIED,
    ]);
    const capabilities = { extensions: { [TASKS_EXTENSION]: {} } };
    const newest = await modern(server.url, "tools/call", one.params, { capabilities, headers });
    expect(newest.body.error).toMatchObject({ code: -31003, data: DENIED });
    const progress = { ...one, params: { ...one.params, _meta: { progressToken: 1 } } };
    expect((await postJson(server.url, progress, headers)).body.error?.data).toMatchObject(DENIED);
  });

  test("cannot be read, completed, got or watched by name", async () => {
    const refused = async (method: string, params: Record<string, unknown>): Promise<unknown> =>
      (await rpc(server.url, method, params, ada)).body.error?.data;
    expect(await refused("resources/read", { uri: "fixture://greeting" })).toMatchObject(DENIED);
    expect(await refused("resources/read", { uri: "orders://7" })).toMatchObject(DENIED);
    expect(await refused("prompts/get", { name: "review", arguments: { code: "x" } })).toMatchObject(DENIED);
    const complete = { ref: { type: "ref/prompt", name: "review" }, argument: { name: "language", value: "t" } };
    expect(await refused("completion/complete", complete)).toMatchObject(DENIED);
    const headers = { authorization: `Bearer ${ada.token}` };
    const listen = await modern(
      server.url,
      "subscriptions/listen",
      { notifications: { resourceSubscriptions: ["fixture://counter"] } },
      { headers },
    );
    expect(listen.body.error?.data).toMatchObject(DENIED);
    const session = await startSession(headers);
    const subscribed = await postJson(
      server.url,
      { jsonrpc: "2.0", id: 3, method: "resources/subscribe", params: { uri: "fixture://counter" } },
      session,
    );
    expect(subscribed.body.error?.data).toMatchObject(DENIED);
  });

  test("a label or a header changes nothing", async () => {
    for (const label of ["bob", "owlclaw:admin", "*"])
      expect((await call(server.url, "echo", { text: "x" }, { ...ada, label })).body.error?.data).toMatchObject(DENIED);
  });
});

async function startSession(headers: Record<string, string>): Promise<Record<string, string>> {
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } };
  const answer = await postJson(server.url, { jsonrpc: "2.0", id: 1, method: "initialize", params }, headers);
  return {
    ...headers,
    "mcp-session-id": answer.headers.get("mcp-session-id") ?? "",
    accept: "application/json, text/event-stream",
  };
}
