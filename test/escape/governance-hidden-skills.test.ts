import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { headersOf, newFolder, rpc, SECRET, token } from "../integration/governance-lab.ts";
import { type HttpServer, startHttp } from "../integration/harness.ts";
import { modern } from "../integration/http-client.ts";

const SHOP = path.resolve(import.meta.dirname, "../../examples/shop");

/** A skill and a file that ada may not know of, and every door that could still tell her. */
describe.each([false, true])("hidden skills, with inlineSkills: %s", (inlineSkills) => {
  let server: HttpServer;
  let ada: { readonly token: string };
  let bob: { readonly token: string };

  beforeAll(async () => {
    const hidden = ["skill://orders/refund", "skill://orders/order-status/references/*"];
    server = await startHttp({
      config: {
        auth: { enabled: true, jwt: { secret: SECRET } },
        skills: { dir: path.join(SHOP, "skills") },
        handlers: { paths: [path.join(SHOP, "handlers/*.ts")], inlineSkills },
        sandbox: { root: newFolder(), enabled: false },
        governance: { clients: { ada: { hidden } } },
      },
    });
    ada = { token: await token("ada") };
    bob = { token: await token("bob") };
  });

  afterAll(() => server.stop());

  async function suggested(value: string, as: { readonly token: string }, uri = "skill://{+path}"): Promise<unknown> {
    const params = { ref: { type: "ref/resource", uri }, argument: { name: "path", value } };
    return (await rpc(server.url, "completion/complete", params, as)).body.result?.["completion"];
  }

  test("are not suggested", async () => {
    expect(await suggested("", bob)).toMatchObject({ total: 3 });
    expect(await suggested("", ada)).toEqual({
      values: ["orders/order-status", "support/tone-of-voice"],
      total: 2,
      hasMore: false,
    });
    expect(await suggested("orders/refund/", ada)).toMatchObject({ values: [], total: 0 });
    expect(await suggested("orders/order-status/", ada)).toMatchObject({ values: ["orders/order-status/SKILL.md"] });
  });

  test("are not in the description or the facts of a tool, which stays", async () => {
    const listed = async (as: { readonly token: string }): Promise<Record<string, unknown>> => {
      const { body } = await rpc(server.url, "tools/list", {}, as);
      return body.result?.["tools"].find(({ name }: { readonly name: string }) => name === "order_refund");
    };
    const told = JSON.stringify(await listed(bob));
    expect(told).toContain("skill://orders/refund");
    expect(told).toContain("Pays money back for an order that came back.");
    const tool = await listed(ada);
    expect(tool["description"]).toBe("Pays the whole amount of a returned order back. Cannot be undone.");
    expect(JSON.stringify(tool)).not.toMatch(/skill:|came back\./);
    const capabilities = (await rpc(server.url, "mcp.capabilities", {}, ada)).text;
    expect(capabilities).not.toMatch(/skill:\/\/orders\/refund|came back\./);
  });

  test("are not in what the skills extension lists, nor are hidden files of other skills", async () => {
    const ask = async (method: string, params: Record<string, unknown> = {}) =>
      (await modern(server.url, method, params, { headers: headersOf(ada) })).text;
    const status = "skill://orders/order-status";
    for (const text of [
      await ask("skills/list"),
      await ask("skills/get", { uri: `${status}/SKILL.md` }),
      await ask("resources/directory/read", { uri: status }),
    ]) {
      expect(text).toContain(`${status}/SKILL.md`);
      expect(text).not.toMatch(/states\.md|orders\/refund/);
    }
    const inside = await ask("resources/directory/read", { uri: `${status}/references` });
    expect(inside).not.toContain("states.md");
    const denied = "governance_denied";
    expect(await ask("resources/directory/read", { uri: "skill://orders/refund" })).toContain(denied);
    expect(await ask("resources/directory/read", { uri: "skill://orders/refund/references" })).toContain(denied);
  });

  test("are not at their address, however it is written", async () => {
    for (const place of [
      "orders/refund",
      "orders/%72efund",
      "orders/refund/%53KILL.md",
      "%6frders/refund/references/limits.md",
      "orders/order-status/%72eferences/states.md",
    ]) {
      const answer = await fetch(`${server.origin}/skills/${place}`, { headers: headersOf(ada) });
      expect([place, answer.status]).toEqual([place, 403]);
      expect(await answer.text()).toContain("clients.ada.hidden");
    }
  });
});
