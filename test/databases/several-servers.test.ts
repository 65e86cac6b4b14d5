import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startServices, SERVICES_MISSING, type Services } from "../services/cluster.ts";
import { type As, call, headersOf, SECRET, token } from "../integration/governance-lab.ts";
import { type HttpServer, until } from "../integration/harness.ts";
import { modern } from "../integration/http-client.ts";
import { text } from "../integration/wire-messages.ts";

const CONFIG = {
  auth: { enabled: true, jwt: { secret: SECRET } },
  governance: {
    defaults: { callsPerMinute: 100_000, callsPerDay: 0, concurrency: 0 },
    clients: {
      spender: { monthlyBudget: 1000 },
      holder: { concurrency: 20, monthlyBudget: 4000 },
    },
    tools: { echo: { cost: 1 }, hold: { cost: 100 }, add: { confirm: "client" } },
  },
};

// Databases, and three servers or four, take their time on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const MISSING = SERVICES_MISSING === undefined ? "" : `: ${SERVICES_MISSING}`;

describe.skipIf(SERVICES_MISSING !== undefined)(`three servers on one PostgreSQL${MISSING}`, () => {
  let services: Services;
  let servers: [HttpServer, HttpServer, HttpServer];

  beforeAll(async () => {
    services = await startServices();
    // The first makes the ledger's keys and tables; the others find them.
    const first = await services.start({ config: CONFIG });
    servers = [first, ...(await Promise.all([services.start({ config: CONFIG }), services.start({ config: CONFIG })]))];
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await services.stop();
  });

  async function as(subject: string): Promise<As> {
    return { token: await token(subject) };
  }

  /** Calls until one is let through. */
  async function passed({ url }: HttpServer, who: As): Promise<void> {
    await until(
      async () => (await call(url, "echo", { text: "x" }, who)).body.result,
      (result) => result !== undefined,
    );
  }

  test("[004-R8.2] 50 clients at once and money for 1,000 calls: exactly 1,000 pass, on one ledger that verifies", async () => {
    const spender = await as("spender");
    let left = 1100;
    const counts = { passed: 0, refused: 0 };
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        while (left > 0) {
          const { url } = servers[left-- % 3] ?? servers[0];
          const { body } = await call(url, "echo", { text: "x" }, spender);
          if (body.result !== undefined) counts.passed += 1;
          else if (body.error?.data?.["rule"] === "clients.spender.monthlyBudget") counts.refused += 1;
        }
      }),
    );
    expect(counts).toEqual({ passed: 1000, refused: 100 });
    const rows = services.postgres.sql(
      "SELECT count(*) FROM ledger WHERE principal = 'spender' AND name = 'echo' AND outcome = 'ok'",
    );
    expect(rows).toBe("1000");
    expect(await services.verify()).toMatchObject({ code: 0 });
  });

  test("a question that one server asked is answered at another", async () => {
    const headers = headersOf(await as("ada"));
    const params = { name: "ask_name", arguments: {} };
    const options = { capabilities: { elicitation: {} }, headers };
    const asked = await modern(servers[0].url, "tools/call", params, options);
    expect(asked.body.result).toMatchObject({ resultType: "input_required" });
    const { requestState, inputRequests } = asked.body.result ?? {};
    const [key = ""] = Object.keys(inputRequests);
    const inputResponses = { [key]: { action: "accept", content: { name: "Ada" } } };
    const more = { ...params, requestState, inputResponses };
    expect(text((await modern(servers[1].url, "tools/call", more, options)).body)).toBe("hello Ada");
  });

  test("a client's yes that one server asked for is good for one call, at whichever server", async () => {
    const headers = headersOf(await as("ada"));
    const params = { name: "add", arguments: { a: 1, b: 2 } };
    const at = async (index: number, more: Record<string, unknown> = {}) =>
      (await modern(servers[index]?.url ?? "", "tools/call", { ...params, ...more }, { capabilities, headers })).body;
    const capabilities = { elicitation: {} };
    const { requestState, inputRequests } = (await at(0)).result ?? {};
    const [key = ""] = Object.keys(inputRequests);
    const yes = { requestState, inputResponses: { [key]: { action: "accept", content: { approve: true } } } };
    expect((await at(1, yes)).result).toMatchObject({ structuredContent: { sum: 3 } });
    for (const index of [0, 1, 2])
      expect((await at(index, yes)).result).toMatchObject({ resultType: "input_required" });
  });

  test("a task that one server runs is asked for, answered and cancelled at others, by its owner alone", async () => {
    const ada = await as("ada");
    const capabilities = { elicitation: {}, extensions: { "io.modelcontextprotocol/tasks": {} } };
    const at = (index: number, method: string, params: Record<string, unknown>, who = ada) =>
      modern(servers[index]?.url ?? "", method, params, { capabilities, headers: headersOf(who) });
    const begun = await at(0, "tools/call", { name: "only_as_task", arguments: {} });
    const { taskId } = begun.body.result ?? {};
    const asked = await until(
      async () => (await at(1, "tasks/get", { taskId })).body.result,
      (task) => task?.["status"] === "input_required",
    );
    expect(Object.keys(asked?.["inputRequests"])).toEqual(["go"]);
    const inputResponses = { go: { action: "accept", content: { go: true } } };
    expect((await at(2, "tasks/update", { taskId, inputResponses })).body.error).toBeUndefined();
    const done = await until(
      async () => (await at(1, "tasks/get", { taskId })).body.result,
      (task) => task?.["status"] === "completed",
    );
    expect(done?.["result"].content).toEqual([{ type: "text", text: "went on" }]);
    const job = (await at(0, "tools/call", { name: "job", arguments: { label: "x" } })).body.result?.["taskId"];
    const eve = await as("eve");
    for (const method of ["tasks/get", "tasks/cancel"])
      expect((await at(1, method, { taskId: job }, eve)).body.error?.message).toContain("there is no task");
    await at(2, "tasks/cancel", { taskId: job });
    expect((await at(1, "tasks/get", { taskId: job })).body.result).toMatchObject({ status: "cancelled" });
    const unknown = await at(1, "tasks/get", { taskId: `AAAAAAAAAAAA.${"A".repeat(32)}` });
    expect(unknown.body.error?.message).toContain("there is no task");
  });

  test("without PostgreSQL every server refuses calls, and goes on by itself when it is back", async () => {
    const ada = await as("ada");
    await services.postgres.kill();
    for (const { url } of servers) {
      const { body } = await call(url, "echo", { text: "x" }, ada);
      expect(body.error?.data).toMatchObject({ kind: "store_unavailable", retryable: true });
    }
    await services.postgres.start();
    for (const server of servers) await passed(server, ada);
    expect(await services.verify()).toMatchObject({ code: 0 });
  });

  test("[004-R8.2] a server killed in the middle of calls leaves a row of each, which costs what was reserved, and frees their places", async () => {
    const holder = await as("holder");
    const dying = await services.start({ config: CONFIG });
    const held = Array.from({ length: 20 }, (_, index) =>
      call(dying.url, "hold", { label: `h${index}` }, holder).catch(() => "gone"),
    );
    const [, second, third] = servers;
    const ada = await as("ada");
    for (const index of held.keys())
      await until(
        async () => (await call(dying.url, "observe", { label: `h${index}` }, ada)).body.result?.["structuredContent"],
        (seen) => seen?.started === true,
      );
    const refused = await call(second.url, "echo", { text: "x" }, holder);
    expect(refused.body.error?.data).toMatchObject({ rule: "clients.holder.concurrency", used: 20 });
    dying.child.kill("SIGKILL");
    expect(new Set(await Promise.all(held))).toEqual(new Set(["gone"]));
    // A lease later its places are free.
    await passed(third, holder);
    const after = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        call(index % 2 === 0 ? second.url : third.url, "echo", { text: "x" }, holder),
      ),
    );
    expect(after.filter(({ body }) => body.result === undefined)).toEqual([]);
    expect(
      services.postgres.sql(
        "SELECT count(*), sum(cost_micros)::BIGINT / 1000000 FROM ledger WHERE principal = 'holder' AND outcome = 'unknown'",
      ),
    ).toBe("20|2000");
    const spent = services.postgres.sql("SELECT sum(cost_micros) / 1000000 FROM ledger WHERE principal = 'holder'");
    const { body } = await call(second.url, "echo", { text: "x" }, holder);
    expect(body.result?.["_meta"]["owlclaw/quota"].budget.remaining).toBe(4000 - Number(spent) - 1);
    expect(await services.verify()).toMatchObject({ code: 0 });
  });
});
