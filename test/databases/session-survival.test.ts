import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { storedNameOf } from "../../src/cluster/session-state.ts";
import { parseEventId } from "../../src/transport/http/resumable-stream.ts";
import { startServices, SERVICES_MISSING, type Services } from "../services/cluster.ts";
import { type HttpServer, until } from "../integration/harness.ts";
import { closeStreams, HttpSession } from "../integration/http-client.ts";
import { text } from "../integration/wire-messages.ts";

// Databases, and three servers or four, take their time on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const CONFIG = { governance: { defaults: { callsPerMinute: 100_000, callsPerDay: 0, concurrency: 0 } } };
const MISSING = SERVICES_MISSING === undefined ? "" : `: ${SERVICES_MISSING}`;

afterEach(() => closeStreams());

describe.skipIf(SERVICES_MISSING !== undefined)(`sessions in PostgreSQL${MISSING}`, () => {
  let services: Services;
  let servers: [HttpServer, HttpServer];

  beforeAll(async () => {
    services = await startServices();
    const first = await services.start({ config: CONFIG });
    servers = [first, await services.start({ config: CONFIG })];
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await services.stop();
  });

  const hold = (session: HttpSession, label: string): ReturnType<HttpSession["open"]> => {
    const params = { name: "hold", arguments: { label, progress: true }, _meta: { progressToken: "p" } };
    return session.open({ jsonrpc: "2.0", id: 7, method: "tools/call", params });
  };
  const methods = (messages: readonly { method?: string; id?: unknown }[]): unknown[] =>
    messages.map(({ method, id }) => method ?? id);
  /** How many rows the database has of a session. */
  const rowsOf = ({ id }: HttpSession): string =>
    services.postgres.sql(`SELECT (SELECT count(*) FROM owlclaw_sessions WHERE key = '${storedNameOf(id)}')
      + (SELECT count(*) FROM owlclaw_session_events WHERE session = '${storedNameOf(id)}')`);
  /** Waits until the database has this event, and with it all that the server told before: it writes in order. */
  const stored = async (session: HttpSession, eventId = ""): Promise<void> => {
    const { streamId = "", sequence } = parseEventId(eventId) ?? {};
    const where = `session = '${storedNameOf(session.id)}' AND stream = '${streamId}'`;
    const newest = `SELECT coalesce(max(sequence), -1) FROM owlclaw_session_events WHERE ${where}`;
    await until(
      () => services.postgres.sql(newest),
      (text) => Number(text) >= Number(sequence),
    );
  };

  test("outlive the server that has them: killed, another goes on with all that was settled", async () => {
    const home = await services.start({ config: CONFIG });
    const session = await HttpSession.open(home.url, { capabilities: { elicitation: {} } });
    await session.request("logging/setLevel", { level: "error" });
    await session.request("resources/subscribe", { uri: "fixture://counter" });
    const near = session.at(servers[0].url);
    const stream = await near.listen();
    await session.call("announce", { list: "tools" });
    const { id: seen = "" } = await stream.event(({ data }) => data.includes("tools/list_changed"));
    await session.call("announce", { list: "prompts" });
    await stream.message(({ method }) => method === "notifications/prompts/list_changed");
    const call = await hold(near, "killed");
    const { id: told = "" } = await call.event(({ data }) => data.includes("holding"));
    // What it tells is stored a moment later.
    await stored(session, told);
    home.child.kill("SIGKILL");
    await Promise.all([stream.ended(), call.ended()]);
    const [missed, rest] = await Promise.all([near.listen(seen), session.at(servers[1].url).listen(told)]);
    await rest.ended();
    expect(rest.messages).toMatchObject([{ id: 7, error: { data: { kind: "session_elsewhere" } } }]);
    await missed.message(({ method }) => method === "notifications/prompts/list_changed");
    // The next events come on the same stream, after the missed ones.
    await near.call("bump");
    await missed.message(({ method }) => method === "notifications/resources/updated");
    expect(methods(missed.messages)).toEqual(["notifications/prompts/list_changed", "notifications/resources/updated"]);
    const ids = missed.events.map(({ id = "" }) => Number(id.split(".")[1]));
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    const logged = await session.at(servers[1].url).call("log_lines");
    expect(logged.messages.flatMap(({ params }) => params?.["level"] ?? [])).toEqual(["error"]);
    const again = await near.request("initialize", { protocolVersion: "2025-11-25", capabilities: {} });
    expect(again.body.error?.message).toContain("initialized already");
    // A late answer to what the lost server asked answers nothing that another asks.
    const asking = await near.open({ jsonrpc: "2.0", id: 8, method: "tools/call", params: { name: "ask_name" } });
    const question = await asking.message(({ method }) => method === "elicitation/create");
    const answer = (id: unknown, name: string): Promise<unknown> =>
      near.send({ jsonrpc: "2.0", id, result: { action: "accept", content: { name } } });
    for (const id of [0, 1, 2]) await answer(id, "Nobody");
    await answer(question.id, "Ada");
    expect(text(await asking.message(({ id, method }) => id === 8 && method === undefined))).toBe("hello Ada");
    expect((await near.delete()).status).toBe(204);
    for (const server of servers) expect((await session.at(server.url).request("ping")).status).toBe(404);
  });

  test("outlive a server that stops, without anybody waiting for a lease", async () => {
    const home = await services.start({ config: CONFIG });
    const session = await HttpSession.open(home.url);
    const stream = await session.at(servers[0].url).listen();
    await session.call("announce", { list: "tools" });
    const { id = "" } = await stream.event(({ data }) => data.includes("tools/list_changed"));
    await home.stop();
    await stream.ended();
    const next = await session.at(servers[1].url).listen(id);
    await session.at(servers[0].url).call("announce", { list: "resources" });
    await session.at(servers[1].url).call("announce", { list: "resources" });
    await next.message(({ method }) => method === "notifications/resources/list_changed");
    expect(new Set(methods(next.messages))).toEqual(new Set(["notifications/resources/list_changed"]));
  });

  test("are never in two places: a server that hung longer than its lease finds that it has lost them", async () => {
    const home = await services.start({ config: CONFIG });
    const session = await HttpSession.open(home.url);
    expect((await session.request("ping")).status).toBe(200);
    home.child.kill("SIGSTOP");
    const near = session.at(servers[0].url);
    await until(
      async () => (await near.request("ping")).status,
      (status) => status === 200,
    );
    await near.request("logging/setLevel", { level: "error" });
    home.child.kill("SIGCONT");
    // The lease of the one that hung has expired: it refuses requests until it is announced again.
    await until(
      async () => (await session.request("ping")).status,
      (status) => status !== 503,
    );
    // The one that hung sends them where the session is.
    const logged = await session.call("log_lines");
    expect(logged.body.error).toBeUndefined();
    expect(logged.messages.flatMap(({ params }) => params?.["level"] ?? [])).toEqual(["error"]);
    await home.stop();
  });

  test("without the database nobody goes on with anything, and afterwards everybody does", async () => {
    const session = await HttpSession.open(servers[0].url);
    const near = session.at(servers[1].url);
    expect((await near.request("ping")).status).toBe(200);
    await services.postgres.kill();
    const begun = HttpSession.open(servers[0].url);
    await expect(begun).rejects.toThrow("503");
    expect((await near.request("ping")).status).toBe(503);
    await until(
      async () => (await session.request("ping")).status,
      (status) => status === 503,
    );
    await services.postgres.start();
    const statuses = new Set<number>();
    for (const each of [session, near])
      await until(
        async () => (await each.request("ping")).status,
        (status) => statuses.add(status).has(200) && status === 200,
      );
    // 404 would make a client start anew.
    expect([...statuses]).not.toContain(404);
    expect(await HttpSession.open(servers[1].url)).toMatchObject({ version: "2025-11-25" });
  });

  test("are written again after a crash of the database, and outlive their server after that too", async () => {
    const home = await services.start({ config: CONFIG });
    const session = await HttpSession.open(home.url);
    const stream = await session.listen();
    await session.call("announce", { list: "tools" });
    const { id = "" } = await stream.event(({ data }) => data.includes("tools/list_changed"));
    await session.call("announce", { list: "prompts" });
    const last = await stream.event(({ data }) => data.includes("prompts/list_changed"));
    await services.postgres.kill();
    await services.postgres.start();
    await stored(session, last.id);
    home.child.kill("SIGKILL");
    const next = await session.at(servers[0].url).listen(id);
    expect(await next.message(() => true)).toMatchObject({ method: "notifications/prompts/list_changed" });
    // Calls go on when nobody can hold any more what the killed server held.
    await until(
      async () => (await session.at(servers[0].url).call("announce", { list: "tools" })).body.error,
      (error) => error === undefined,
    );
  });

  test("leave nothing behind in the database when they end, and nothing that somebody could read while they live", async () => {
    const session = await HttpSession.open(servers[0].url);
    const params = { name: "echo", arguments: { text: "walls have ears" }, _meta: { progressToken: "p" } };
    await session.send({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    const call = await hold(session, "walls have ears");
    const { id } = await call.event(({ data }) => data.includes("holding"));
    await stored(session, id);
    const dump = ["owlclaw_sessions", "owlclaw_session_streams", "owlclaw_session_events"]
      .map((table) => services.postgres.sql(`SELECT * FROM ${table}`))
      .join();
    expect(dump).not.toMatch(/walls have ears|holding|anonymous|progress|clientInfo/);
    expect(dump).not.toContain(session.id);
    await session.delete();
    await until(
      () => rowsOf(session),
      (count) => count === "0",
    );
  });
});
