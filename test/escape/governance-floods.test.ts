import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type As, call, newFolder, rpc, startGoverned, token } from "../integration/governance-lab.ts";
import { StdioLine } from "../integration/stdio-line.ts";

/** What costs no quota must cost the server nothing that lasts. */
let server: Awaited<ReturnType<typeof startGoverned>>;
let admin: As;

beforeAll(async () => {
  server = await startGoverned({ governance: { defaults: { callsPerMinute: 10 } }, hasAuth: true });
  admin = { token: await token("root", { scope: "owlclaw:admin" }) };
});

afterAll(() => server.stop());

async function rowsOf(client: string): Promise<readonly Record<string, unknown>[]> {
  const headers = { authorization: `Bearer ${admin.token ?? ""}` };
  const answer = await fetch(`${server.origin}/api/ledger?client=${client}`, { headers });
  const { rows }: { readonly rows: readonly Record<string, unknown>[] } = JSON.parse(await answer.text());
  return rows;
}

describe("a flood", () => {
  test("of lists under ever new names of the client writes one row", async () => {
    const mallory = await token("mallory");
    for (let index = 0; index < 50; index++) {
      const { body } = await rpc(server.url, "tools/list", {}, { token: mallory, label: `client-${index}` });
      expect(body.result).toBeDefined();
    }
    expect((await rowsOf("mallory")).map(({ name }) => name)).toEqual(["tools/list"]);
  });

  test("is answered 429 before it is read, and others are served", async () => {
    const eve: As = { token: await token("eve") };
    const headers = { authorization: `Bearer ${eve.token ?? ""}`, "content-type": "application/json" };
    const send = () => fetch(server.url, { method: "POST", headers, body: "no JSON at all" });
    const answers: Response[] = [];
    // So many at a time are well above what the bucket gets back meanwhile.
    while (answers.length < 20_000 && answers.at(-1)?.status !== 429)
      answers.push(...(await Promise.all(Array.from({ length: 50 }, send))));
    const last = answers.at(-1);
    expect(last?.status).toBe(429);
    expect(last?.headers.get("retry-after")).toBe("1");
    expect(await last?.json()).toMatchObject({ error: { data: { kind: "governance_denied", rule: "flood" } } });
    expect((await rowsOf("eve")).length).toBeLessThan(20);
    const other: As = { token: await token("bob") };
    expect((await call(server.url, "echo", { text: "still here" }, other)).status).toBe(200);
  });

  test("on stdio is read slower, and loses nothing", async () => {
    const config = { governance: { defaults: { callsPerMinute: 10 } }, sandbox: { root: newFolder(), enabled: false } };
    const line = new StdioLine({ config });
    await line.initialize();
    const ids = Array.from({ length: 3000 }, (_each, index) => `ping-${index}`);
    line.write(ids.map((id) => `${JSON.stringify({ jsonrpc: "2.0", id, method: "ping" })}\n`).join(""));
    const answers = await Promise.all(ids.map((id) => line.answer(id)));
    expect(answers.every(({ result }) => result !== undefined)).toBe(true);
    await line.finish();
  });
});
