import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rpc, startGoverned, token } from "./governance-lab.ts";

/** Suggestions for `review`, whose completer knows typescript and python. */
let server: Awaited<ReturnType<typeof startGoverned>>;

beforeAll(async () => {
  const clients = {
    asked: { confirm: { "prompt:review": "operator" } },
    denied: { deny: ["prompt:review"] },
  };
  const rules = [
    { id: "closed", when: 'kind == "prompt" && principal == "closed"', effect: "deny" },
    { id: "asking", when: 'principal == "ruled" || args.code == "secret"', effect: "confirm" },
    {
      id: "no-python",
      when: 'kind == "completion" && args.argument == "language" && args.value.startsWith("p")',
      effect: "deny",
    },
  ];
  server = await startGoverned({ governance: { clients, rules, approvalTimeoutSeconds: 1 }, hasAuth: true });
});

afterAll(() => server.stop());

async function suggestions(client: string, value: string) {
  const params = { ref: { type: "ref/prompt", name: "review" }, argument: { name: "language", value } };
  const { body } = await rpc(server.url, "completion/complete", params, { token: await token(client) });
  return body.error?.data ?? body.result?.["completion"].values;
}

async function review(client: string) {
  const params = { name: "review", arguments: { code: "pass", language: "python" } };
  return (await rpc(server.url, "prompts/get", params, { token: await token(client) })).body;
}

describe("suggestions", () => {
  test("are a kind of their own to rules, with the argument and what was typed of it", async () => {
    expect(await suggestions("ada", "p")).toMatchObject({ kind: "governance_denied", rule: "rules.no-python" });
    expect(await suggestions("ada", "t")).toEqual(["typescript"]);
    expect((await review("ada")).result).toBeDefined();
  });

  test.each([
    ["asked", "clients.asked.confirm"],
    ["ruled", "rules.asking"],
  ])("wait for nobody, though what they are for does: %s", async (client, rule) => {
    expect(await suggestions(client, "t")).toEqual(["typescript"]);
    expect((await review(client)).error?.data).toMatchObject({ kind: "governance_denied", rule });
  });

  test.each([
    ["denied", "clients.denied.deny"],
    ["closed", "rules.closed"],
  ])("are refused with what they are for: %s", async (client, rule) => {
    expect(await suggestions(client, "t")).toMatchObject({ kind: "governance_denied", rule });
    expect((await review(client)).error?.data).toMatchObject({ kind: "governance_denied", rule });
  });
});
