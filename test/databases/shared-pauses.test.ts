import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { cookieOf, login, PageOperator } from "../escape/dashboard-lab.ts";
import { describeUnless } from "../setup/mandatory.ts";
import { startServices, SERVICES_MISSING, type Services } from "../services/cluster.ts";
import { call, newFolder, SECRET, startGoverned, token } from "../integration/governance-lab.ts";
import { type HttpServer, until } from "../integration/harness.ts";

const CONFIG = {
  auth: { enabled: true, jwt: { secret: SECRET } },
  governance: { defaults: { callsPerMinute: 100_000, callsPerDay: 0, concurrency: 0 } },
};

// A database and several servers take their time on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

async function operator({ origin }: HttpServer, subject: string): Promise<PageOperator> {
  const answer = await login(origin, await token(subject, { scope: "owlclaw:admin" }));
  return new PageOperator(origin, cookieOf(answer), answer.json.csrf);
}

/** What comes of a call: `ok`, or the kind of its error. */
async function outcome({ url }: HttpServer, client: string): Promise<string> {
  const { body } = await call(url, "echo", { text: "x" }, { token: await token(client) });
  return body.error === undefined ? "ok" : String(body.error.data?.["kind"]);
}

async function becomes(server: HttpServer, client: string, wanted: string): Promise<void> {
  await until(
    () => outcome(server, client),
    (got) => got === wanted,
  );
}

async function paused(who: PageOperator): Promise<string[]> {
  return (await who.get("paused")).json.paused.map(({ client }: { client: string }) => client).toSorted();
}

/** Both change many clients at the same time; what each has done must be there for both. */
async function pauseAtOnce(operators: readonly [PageOperator, PageOperator]): Promise<void> {
  expect(await Promise.all(operators.map(paused))).toEqual([[], []]);
  const clients = operators.map((_, at) => Array.from({ length: 15 }, (__, index) => `client-${at}-${index}`));
  const all = (act: (who: PageOperator, client: string) => Promise<unknown>): Promise<unknown> =>
    Promise.all(operators.flatMap((who, at) => (clients[at] ?? []).map((client) => act(who, client))));
  await all((who, client) => who.post("pause", { client }));
  const wanted = clients.flat().toSorted();
  for (const who of operators)
    await until(
      () => paused(who),
      (found) => found.join() === wanted.join(),
    );
  // Each ends what the other has begun.
  const [one, two] = operators;
  await all((who, client) =>
    client.endsWith("0") ? Promise.resolve() : (who === one ? two : one).post("resume", { client }),
  );
  const left = wanted.filter((client) => client.endsWith("0"));
  for (const who of operators)
    await until(
      () => paused(who),
      (found) => found.join() === left.join(),
    );
  for (const client of left) await one.post("resume", { client });
  for (const who of operators)
    await until(
      () => paused(who),
      (found) => found.length === 0,
    );
}

describeUnless(SERVICES_MISSING, "servers that share a database and no folder", () => {
  let services: Services;
  let [one, two]: HttpServer[] = [];
  let [anna, bob]: PageOperator[] = [];

  const pair = (): { readonly servers: [HttpServer, HttpServer]; readonly operators: [PageOperator, PageOperator] } => {
    if (one === undefined || two === undefined || anna === undefined || bob === undefined)
      throw new Error("not started");
    return { servers: [one, two], operators: [anna, bob] };
  };

  beforeAll(async () => {
    services = await startServices();
    one = await services.start({ config: CONFIG });
    two = await services.start({ config: CONFIG });
    [anna, bob] = await Promise.all([operator(one, "anna"), operator(two, "bob")]);
  });
  afterAll(async () => {
    await Promise.all([one?.stop(), two?.stop()]);
    await services.stop();
  });

  test("a pause on one refuses on the other, a resume there frees both, and both are on the record", async () => {
    const { servers, operators } = pair();
    await operators[0].post("pause", { client: "ada", reason: "look into it" });
    expect(await outcome(servers[0], "ada")).toBe("paused");
    await becomes(servers[1], "ada", "paused");
    expect(await outcome(servers[1], "eve")).toBe("ok");
    expect(await paused(operators[1])).toEqual(["ada"]);
    expect((await operators[1].post("resume", { client: "ada" })).json).toEqual({ paused: [] });
    expect(await outcome(servers[1], "ada")).toBe("ok");
    await becomes(servers[0], "ada", "ok");
    const acts = services.postgres.sql("SELECT principal, name FROM ledger WHERE name LIKE 'client.%' ORDER BY seq");
    expect(acts.split("\n")).toEqual(["anna|client.pause", "bob|client.resume"]);
  });

  test("a pause that was made a moment ago on one can be ended on the other at once", async () => {
    const { operators } = pair();
    for (let times = 0; times < 10; times += 1) {
      await operators[0].post("pause", { client: "ada" });
      await operators[1].post("resume", { client: "ada" });
      expect(services.postgres.sql("SELECT count(*) FROM owlclaw_pauses")).toBe("0");
    }
    await until(
      () => paused(operators[0]),
      (found) => found.length === 0,
    );
  });

  test("a pause that ends what runs ends it on the other too", async () => {
    const { servers, operators } = pair();
    const held = call(servers[1].url, "hold", { label: "shared" }, { token: await token("ada") });
    await until(
      () => operators[1].get("now"),
      ({ json }) => json.calls.some(({ stage }: { stage: string }) => stage === "running"),
    );
    await operators[0].post("pause", { client: "ada", cancel: true });
    expect((await held).body.error).toMatchObject({ data: { kind: "cancelled" } });
    await operators[0].post("resume", { client: "ada" });
    await becomes(servers[1], "ada", "ok");
  });

  test("what two of them pause and resume at the same moment is all kept", async () => {
    await pauseAtOnce(pair().operators);
    expect(services.postgres.sql("SELECT count(*) FROM owlclaw_pauses")).toBe("0");
  });

  test("a server that hung does not let a call through on what it knew before", async () => {
    const { servers, operators } = pair();
    expect(await outcome(servers[1], "ada")).toBe("ok");
    const ada = await token("ada");
    servers[1].child.kill("SIGSTOP");
    const late = call(servers[1].url, "echo", { text: "x" }, { token: ada });
    try {
      await operators[0].post("pause", { client: "ada" });
      const age =
        "SELECT (pause::json->>'since')::timestamptz < clock_timestamp() - INTERVAL '1.2 s' FROM owlclaw_pauses";
      await until(
        () => services.postgres.sql(age),
        (isOld) => isOld === "t",
      );
    } finally {
      servers[1].child.kill("SIGCONT");
    }
    expect((await late).body.error).toMatchObject({ data: { kind: "paused" } });
    await operators[0].post("resume", { client: "ada" });
    await becomes(servers[1], "ada", "ok");
  });

  test("when nobody can say who is paused, no call runs", async () => {
    const { servers } = pair();
    services.postgres.sql("ALTER TABLE owlclaw_pauses RENAME TO hidden");
    for (const server of servers) await becomes(server, "eve", "store_unavailable");
    expect(await Promise.all(servers.map((server) => outcome(server, "ada")))).toEqual(
      Array(2).fill("store_unavailable"),
    );
    services.postgres.sql("ALTER TABLE hidden RENAME TO owlclaw_pauses");
    for (const server of servers) await becomes(server, "eve", "ok");
    services.postgres.sql("INSERT INTO owlclaw_pauses VALUES ('\"ada\"', '{}')");
    for (const server of servers) await becomes(server, "eve", "store_unavailable");
    services.postgres.sql("DELETE FROM owlclaw_pauses");
    for (const server of servers) await becomes(server, "eve", "ok");
  });

  test("a pause outlives the database and all servers", async () => {
    const { servers, operators } = pair();
    const odd = 'o"dd\u0000 ä\u{1F989}';
    await operators[0].post("pause", { client: odd });
    await operators[0].post("pause", { client: "ada" });
    await services.postgres.kill();
    await services.postgres.start();
    for (const server of servers) await becomes(server, "ada", "paused");
    await Promise.all(servers.map((server) => server.stop()));
    two = await services.start({ config: CONFIG });
    bob = await operator(two, "bob");
    expect(await outcome(two, "ada")).toBe("paused");
    expect(await paused(bob)).toEqual(["ada", odd]);
    for (const client of ["ada", odd]) await bob.post("resume", { client });
    expect(await outcome(two, "ada")).toBe("ok");
  });

  test("a pause from before the database came is taken over", async () => {
    const root = newFolder();
    const folder = join(root, "paused");
    mkdirSync(folder);
    const pause = { client: "late", by: "anna", reason: "as before", since: "2026-11-15T00:00:00.000Z" };
    writeFileSync(join(folder, "late.json"), JSON.stringify(pause));
    const third = await services.start({ config: { ...CONFIG, sandbox: { root } } });
    expect(await outcome(third, "late")).toBe("paused");
    expect(readdirSync(folder)).toEqual([]);
    if (two !== undefined) await becomes(two, "late", "paused");
    await third.stop();
  });
});

test("what two processes of one data folder pause and resume at the same moment is all kept", async () => {
  const root = newFolder();
  const servers = [await startGoverned({ hasAuth: true, root }), await startGoverned({ hasAuth: true, root })] as const;
  const [anna, bob] = [await operator(servers[0], "anna"), await operator(servers[1], "bob")];
  await pauseAtOnce([anna, bob]);
  expect(readdirSync(join(root, "paused"))).toEqual([]);
  await anna.post("pause", { client: "ada" });
  await becomes(servers[1], "ada", "paused");
  await bob.post("resume", { client: "ada" });
  await becomes(servers[0], "ada", "ok");
  await Promise.all(servers.map((server) => server.stop()));
});
