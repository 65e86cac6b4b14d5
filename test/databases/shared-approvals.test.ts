import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startServices, SERVICES_MISSING, type Services } from "../services/cluster.ts";
import { runCli } from "../integration/cli-process.ts";
import { call, headersOf, newFolder, SECRET, token, writeFile } from "../integration/governance-lab.ts";
import { type HttpServer, until } from "../integration/harness.ts";
import { postJson } from "../integration/http-client.ts";
import { describeUnless } from "../setup/mandatory.ts";

const CONFIG = {
  auth: { enabled: true, jwt: { secret: SECRET } },
  governance: {
    defaults: { callsPerMinute: 100_000, callsPerDay: 0, concurrency: 0 },
    tools: { echo: { confirm: "operator" } },
    approvalTimeoutSeconds: 600,
  },
};
/** Looks like a token, and opens nothing. */
const TOKEN = `ghp_${"a1B2".repeat(9)}`;

// A database and several servers take their time on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

interface Waiting {
  readonly id: string;
  readonly principal: string;
  readonly args: { readonly text: string };
}

describeUnless(SERVICES_MISSING, "calls that wait for an operator on one of two servers", () => {
  const root = newFolder();
  let services: Services;
  let one: HttpServer;
  let two: HttpServer;
  let [ada, admin] = ["", ""];

  beforeAll(async () => {
    services = await startServices();
    one = await services.start({ config: CONFIG });
    two = await services.start({ config: { ...CONFIG, sandbox: { root } } });
    ada = await token("ada", { scope: "owlclaw:admin" });
    admin = await token("root", { scope: "owlclaw:admin" });
  });
  afterAll(async () => {
    await Promise.all([one.stop(), two.stop()]);
    await services.stop();
  });

  const ask = ({ url }: HttpServer, text: string) => call(url, "echo", { text }, { token: ada });

  async function list({ origin }: HttpServer): Promise<readonly Waiting[]> {
    const answer = await fetch(`${origin}/api/approvals`, { headers: headersOf({ token: admin }) });
    const { approvals }: { approvals: Waiting[] } = JSON.parse(await answer.text());
    return approvals;
  }

  async function waiting(server: HttpServer, text: string): Promise<Waiting> {
    const [found] = await until(
      async () => (await list(server)).filter(({ args }) => args.text.startsWith(text)),
      (approvals) => approvals.length > 0,
    );
    if (found === undefined) throw new Error("nothing waits");
    return found;
  }

  async function decide(server: HttpServer, id: string, answer: { decision: string; reason?: string; as?: string }) {
    const { as = admin, ...body } = answer;
    return (await postJson(`${server.origin}/api/approvals/${id}`, body, headersOf({ token: as }))).status;
  }

  test("are seen without secrets and approved at the other, once, and never by the caller", async () => {
    const running = ask(one, `please ${TOKEN}`);
    const { id, principal, args } = await waiting(two, "please");
    expect([principal, args.text.includes(TOKEN)]).toEqual(["ada", false]);
    expect(services.postgres.sql("SELECT string_agg(approval, '') FROM owlclaw_approvals")).not.toContain(TOKEN);
    expect(await decide(two, id, { decision: "approve", as: ada })).toBe(403);
    expect(await decide(two, id, { decision: "approve" })).toBe(200);
    expect((await running).body.result).toMatchObject({ content: [{ text: `please ${TOKEN}` }] });
    expect(await decide(two, id, { decision: "approve" })).toBe(404);
    expect(await decide(one, id, { decision: "approve" })).toBe(404);
    const again = ask(one, `please ${TOKEN}`);
    expect(await decide(two, (await waiting(two, "please")).id, { decision: "deny", reason: "once" })).toBe(200);
    expect((await again).body.error?.message).toContain("once");
    const acts = services.postgres.sql("SELECT name, principal FROM ledger WHERE kind = 'admin' ORDER BY seq");
    expect(acts.split("\n").filter((act) => act.startsWith("approval."))).toEqual([
      "approval.approve|root",
      "approval.deny|root",
    ]);
  });

  test("are decided once by operators at both who decide at the same time", async () => {
    const running = ask(one, "both");
    const { id } = await waiting(two, "both");
    const statuses = await Promise.all([
      decide(one, id, { decision: "approve" }),
      decide(two, id, { decision: "deny", reason: "too late" }),
    ]);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 404]);
    const { body } = await running;
    expect(body.result === undefined).toBe(statuses[0] === 404);
  });

  test("are decided by commands on the machine of the other", async () => {
    const config = writeFile("two.yaml", JSON.stringify({ sandbox: { root } }));
    const running = ask(one, "by command");
    const { id } = await waiting(two, "by command");
    const listed = await runCli(["mcp-server", "approvals", "list", "--json", "--config", config]);
    expect(listed.out).toContain(id);
    const { approvals }: { readonly approvals: readonly { readonly id: string; readonly hash: string }[] } = JSON.parse(
      listed.out,
    );
    const hash = approvals.find((each) => each.id === id)?.hash ?? "";
    const approved = await runCli(["mcp-server", "approvals", "approve", id, "--hash", hash, "--config", config]);
    expect(approved).toMatchObject({ code: 0, err: expect.stringContaining("may run, once") });
    expect((await running).body.result).toMatchObject({ content: [{ text: "by command" }] });
  });

  test("are approved by nobody who can only write to the database", async () => {
    const running = ask(one, "forged");
    const { id } = await waiting(two, "forged");
    const forged = JSON.stringify({ decision: "approve", by: "root", reason: "", mac: "AAAA" });
    services.postgres.sql(`UPDATE owlclaw_approvals SET answer = '${forged}' WHERE id = '${id}'`);
    await one.logged("an answer to a call that waits was not written by a server");
    // It goes on waiting, and who may decide does.
    expect((await waiting(two, "forged")).id).toBe(id);
    expect(await decide(two, id, { decision: "deny", reason: "no" })).toBe(200);
    expect((await running).body.result).toBeUndefined();
  });

  test("vanish with a server that is killed", async () => {
    const dying = await services.start({ config: CONFIG });
    const lost = ask(dying, "on the way").catch(() => "lost");
    const { id } = await waiting(two, "on the way");
    dying.child.kill("SIGKILL");
    await until(
      () => list(two),
      (approvals) => approvals.every((each) => each.id !== id),
    );
    expect(await decide(two, id, { decision: "approve" })).toBe(404);
    expect(await lost).toBe("lost");
  });
});
