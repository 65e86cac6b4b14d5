import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { startBalancer, startServices, SERVICES_MISSING, type Services } from "../services/cluster.ts";
import { type HttpServer, until } from "./harness.ts";
import { closeStreams, HttpSession, SseLine } from "./http-client.ts";
import { connect, type Door, type Loose, type Progress } from "./sdk-clients.ts";
import { text } from "./wire-messages.ts";

// Databases, and three servers or four, take their time on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const CONFIG = { governance: { defaults: { callsPerMinute: 100_000, callsPerDay: 0, concurrency: 0 } } };
const MISSING = SERVICES_MISSING === undefined ? "" : `: ${SERVICES_MISSING}`;
const DOORS: readonly Door[] = [
  { client: "v1", transport: "http", version: "2025-11-25" },
  { client: "v2", transport: "http", version: "2025-11-25" },
  { client: "v2", transport: "http", version: "2025-06-18" },
  { client: "v1", transport: "sse", version: "2025-11-25" },
  { client: "v2", transport: "sse", version: "2024-11-05" },
];

afterEach(() => closeStreams());

/** The same session, as its client reaches it through another server. */
function at(session: HttpSession, server: HttpServer): HttpSession {
  return Object.assign(Object.create(HttpSession.prototype) as HttpSession, {
    url: server.url,
    id: session.id,
    version: session.version,
  });
}

describe.skipIf(SERVICES_MISSING !== undefined).each([
  { shared: "PostgreSQL and Redis", hasRedis: true },
  { shared: "PostgreSQL alone", hasRedis: false },
])(`sessions of servers that share $shared${MISSING}`, ({ hasRedis }) => {
  let services: Services;
  let servers: [HttpServer, HttpServer, HttpServer];
  let balancer: Awaited<ReturnType<typeof startBalancer>>;

  beforeAll(async () => {
    services = await startServices({ hasRedis });
    const first = await services.start({ config: CONFIG });
    servers = [first, ...(await Promise.all([services.start({ config: CONFIG }), services.start({ config: CONFIG })]))];
    balancer = await startBalancer(servers.map(({ origin }) => origin));
  });
  afterAll(async () => {
    balancer.close();
    await Promise.all(servers.map((server) => server.stop()));
    await services.stop();
  });

  test.each(DOORS)("SDK $client over $transport, $version: everything works through a balancer", async (door) => {
    const client = await connect(door, balancer.url);
    const call = (name: string, args: Loose = {}): Promise<Loose> => client.callTool({ name, arguments: args });
    const label = `${door.client}-${door.transport}-${door.version}-${hasRedis}`;
    const steps: Progress[] = [];
    const slow = client.callTool(
      { name: "hold", arguments: { label, progress: true } },
      { onprogress: (progress) => steps.push(progress) },
    );
    await until(
      () => steps.length,
      (length) => length === 1,
    );
    await call("release", { label });
    expect((await slow)["content"][0].text).toBe(`released ${label}`);
    expect(steps).toEqual([{ progress: 1, total: 2, message: "holding" }]);
    for (let round = 0; round < 4; round++) {
      expect((await call("echo", { text: `round ${round}` }))["content"][0].text).toBe(`round ${round}`);
      expect((await call("ask_model", { prompt: "?" }))["content"][0].text).toBe("test-model said forty-two");
    }
    await client.setLoggingLevel("warning");
    await call("log_lines");
    await client.subscribeResource({ uri: "fixture://counter" });
    await call("bump");
    await call("announce", { list: "prompts" });
    await until(
      () => client.notifications.map(({ method }) => method),
      (seen) => seen.includes("notifications/resources/updated") && seen.includes("notifications/prompts/list_changed"),
    );
    const logged = client.notifications.filter(({ method }) => method === "notifications/message");
    expect(logged.map(({ params }) => params["level"])).toEqual(["warning", "error"]);
    const controller = new AbortController();
    const held = client.callTool({ name: "hold", arguments: { label: `${label}!` } }, { signal: controller.signal });
    const observed = async (): Promise<Loose> =>
      JSON.parse((await call("observe", { label: `${label}!` }))["content"][0].text);
    await until(observed, ({ started }) => started === true);
    controller.abort("enough");
    await expect(held).rejects.toThrow("enough");
    await until(observed, ({ aborted }) => aborted === true);
    await client.close();
  });

  test.each(DOORS.filter(({ version }) => version !== "2024-11-05"))(
    "SDK $client over $transport, $version: a person's answer reaches the server that asked",
    async (door) => {
      const client = await connect(door, balancer.url);
      for (let round = 0; round < 4; round++) {
        const { content } = await client.callTool({ name: "ask_name", arguments: {} });
        expect(content[0].text).toBe("hello Ada");
      }
      await client.close();
    },
  );

  test("a lost stream goes on at another server with exactly what was missed, in order", async () => {
    const session = await HttpSession.open(servers[0].url);
    const params = { name: "hold", arguments: { label: "resumed", progress: true }, _meta: { progressToken: "p" } };
    const stream = await at(session, servers[1]).open({ jsonrpc: "2.0", id: 7, method: "tools/call", params });
    const { id = "" } = await stream.event(({ data }) => data.includes("holding"));
    stream.close();
    const released = await at(session, servers[2]).call("release", { label: "resumed" });
    expect(text(released.body)).toContain("true");
    const rest = await at(session, servers[2]).listen(id);
    await rest.ended();
    expect(rest.messages).toMatchObject([{ id: 7, result: { content: [{ text: "released resumed" }] } }]);
    const again = await at(session, servers[1]).listen(id.replace(/\d+$/, "0"));
    await again.ended();
    expect(again.messages.map((message) => message.id ?? message.method)).toEqual(["notifications/progress", 7]);
  });

  test("what a call tells comes through in order, and before its answer", async () => {
    const session = await HttpSession.open(servers[0].url);
    const params = { name: "count", arguments: { steps: 100 }, _meta: { progressToken: "p" } };
    const { messages } = await at(session, servers[1]).send({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    expect(messages.slice(0, -1).map(({ params: told }) => told?.["progress"])).toEqual(
      Array.from({ length: 100 }, (_, index) => index + 1),
    );
    expect(messages.at(-1)).toMatchObject({ id: 1, result: { content: [{ text: "counted to 100" }] } });
  });

  test("one GET stream for a session, however many servers: what belongs to no request comes there", async () => {
    const session = await HttpSession.open(servers[0].url);
    const stream = await at(session, servers[1]).listen();
    expect(stream.response.status).toBe(200);
    expect((await at(session, servers[2]).listen()).response.status).toBe(409);
    await at(session, servers[2]).call("announce", { list: "tools" });
    await stream.message(({ method }) => method === "notifications/tools/list_changed");
    stream.close();
  });

  test("a client that hangs up at one server cancels its call on the other", async () => {
    const session = await HttpSession.open(servers[0].url);
    const controller = new AbortController();
    const params = { name: "hold", arguments: { label: `gone-${hasRedis}` } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    const headers = { ...session.headers, "content-type": "application/json" };
    const lost = fetch(servers[1].url, { method: "POST", headers, body, signal: controller.signal });
    const observed = async (): Promise<Loose> =>
      (await at(session, servers[2]).call("observe", { label: `gone-${hasRedis}` })).body.result?.["structuredContent"];
    await until(observed, ({ started }) => started === true);
    controller.abort();
    await expect(lost).rejects.toThrow("aborted");
    await until(observed, ({ aborted }) => aborted === true);
  });

  test("a session that is ended through one server is ended on all, and one that never was is not found", async () => {
    const session = await HttpSession.open(servers[0].url);
    expect((await at(session, servers[1]).request("ping")).status).toBe(200);
    expect((await at(session, servers[2]).delete()).status).toBe(204);
    for (const server of servers) expect((await at(session, server).request("ping")).status).toBe(404);
    for (const id of ["nonsense", `AAAAAAAAAAAA.${"A".repeat(32)}`, session.id.replace(/.$/, "_")]) {
      const invented = Object.assign(at(session, servers[1]), { id });
      const { status, body } = await invented.request("ping");
      expect({ status, kind: body.error?.data?.["kind"] }).toEqual({ status: 404, kind: "session_not_found" });
    }
  });

  test("answers that are no streams come back as they are: status, headers, errors", async () => {
    const session = await HttpSession.open(servers[0].url);
    const near = at(session, servers[1]);
    const strip = ({ status, body, headers }: Awaited<ReturnType<HttpSession["send"]>>): unknown => ({
      status,
      error: body.error && { code: body.error.code, message: body.error.message },
      session: headers.get("mcp-session-id"),
      type: headers.get("content-type"),
    });
    for (const message of [
      { jsonrpc: "2.0", id: 1, method: "nonsense" },
      { jsonrpc: "2.0", id: 1, method: 5 },
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", id: 1, method: "initialize", params: {} },
      [{ jsonrpc: "2.0", id: 1, method: "ping" }],
      { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "fail", arguments: {} } },
    ])
      expect(strip(await near.send(message))).toEqual(strip(await session.send(message)));
    const old = { "mcp-protocol-version": "1999-01-01" };
    expect(strip(await near.send({}, old))).toEqual(strip(await session.send({}, old)));
  });

  test("HTTP+SSE: what is posted at one server is answered on the stream at another", async () => {
    const line = await SseLine.open(servers[0].origin);
    await line.initialize();
    const other = Object.assign(Object.create(SseLine.prototype) as SseLine, {
      stream: line.stream,
      endpoint: line.endpoint.replace(servers[0].origin, servers[1].origin),
    });
    const { result } = await other.request("tools/call", { name: "echo", arguments: { text: "there" } });
    expect(result?.["content"]).toEqual([{ type: "text", text: "there" }]);
    line.stream.close();
    await until(
      () => other.post({ jsonrpc: "2.0", id: 1, method: "ping" }),
      ({ status }) => status === 404,
    );
  });

  test("a server that stops ends the streams that it relays, and waits for the calls", async () => {
    const near = await services.start({ config: CONFIG });
    const session = await HttpSession.open(servers[0].url);
    const stream = await at(session, near).listen();
    const held = at(session, near).call("hold", { label: `stop-${hasRedis}` });
    const observed = async (): Promise<Loose> =>
      (await session.call("observe", { label: `stop-${hasRedis}` })).body.result?.["structuredContent"];
    await until(observed, ({ started }) => started === true);
    near.child.kill("SIGTERM");
    await near.logged("stopping");
    await session.call("release", { label: `stop-${hasRedis}` });
    expect(text((await held).body)).toBe(`released stop-${hasRedis}`);
    await stream.ended();
    await near.exitedWell();
  });
});

describe.skipIf(SERVICES_MISSING !== undefined)(`sessions in Redis${MISSING}`, () => {
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

  test("outlive the server that has them: killed, another goes on with all that was settled", async () => {
    const home = await services.start({ config: CONFIG });
    const session = await HttpSession.open(home.url, { capabilities: { elicitation: {} } });
    await session.request("logging/setLevel", { level: "error" });
    await session.request("resources/subscribe", { uri: "fixture://counter" });
    const near = at(session, servers[0]);
    const stream = await near.listen();
    await session.call("announce", { list: "tools" });
    const { id: seen = "" } = await stream.event(({ data }) => data.includes("tools/list_changed"));
    await session.call("announce", { list: "prompts" });
    await stream.message(({ method }) => method === "notifications/prompts/list_changed");
    const call = await hold(near, "killed");
    const { id: told = "" } = await call.event(({ data }) => data.includes("holding"));
    // What it tells is in Redis a moment later.
    await until(
      async () => (await at(session, servers[1]).request("ping")).status,
      (status) => status === 200,
    );
    home.child.kill("SIGKILL");
    await Promise.all([stream.ended(), call.ended()]);
    const [missed, rest] = await Promise.all([near.listen(seen), at(session, servers[1]).listen(told)]);
    await rest.ended();
    expect(rest.messages).toMatchObject([{ id: 7, error: { data: { kind: "session_elsewhere" } } }]);
    await missed.message(({ method }) => method === "notifications/prompts/list_changed");
    // The next events come on the same stream, after the missed ones.
    await near.call("bump");
    await missed.message(({ method }) => method === "notifications/resources/updated");
    expect(methods(missed.messages)).toEqual(["notifications/prompts/list_changed", "notifications/resources/updated"]);
    const ids = missed.events.map(({ id = "" }) => Number(id.split(".")[1]));
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    const logged = await at(session, servers[1]).call("log_lines");
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
    for (const server of servers) expect((await at(session, server).request("ping")).status).toBe(404);
  });

  test("outlive a server that stops, without anybody waiting for a lease", async () => {
    const home = await services.start({ config: CONFIG });
    const session = await HttpSession.open(home.url);
    const stream = await at(session, servers[0]).listen();
    await session.call("announce", { list: "tools" });
    const { id = "" } = await stream.event(({ data }) => data.includes("tools/list_changed"));
    await home.stop();
    await stream.ended();
    const next = await at(session, servers[1]).listen(id);
    await at(session, servers[0]).call("announce", { list: "resources" });
    await at(session, servers[1]).call("announce", { list: "resources" });
    await next.message(({ method }) => method === "notifications/resources/list_changed");
    expect(new Set(methods(next.messages))).toEqual(new Set(["notifications/resources/list_changed"]));
  });

  test("are never in two places: a server that hung longer than its lease finds that it has lost them", async () => {
    const home = await services.start({ config: CONFIG });
    const session = await HttpSession.open(home.url);
    expect((await session.request("ping")).status).toBe(200);
    home.child.kill("SIGSTOP");
    const near = at(session, servers[0]);
    await until(
      async () => (await near.request("ping")).status,
      (status) => status === 200,
    );
    await near.request("logging/setLevel", { level: "error" });
    home.child.kill("SIGCONT");
    // The one that hung sends them where the session is.
    const logged = await session.call("log_lines");
    expect(logged.messages.flatMap(({ params }) => params?.["level"] ?? [])).toEqual(["error"]);
    await home.stop();
  });

  test("without Redis nobody goes on with anything, and afterwards everybody does", async () => {
    const session = await HttpSession.open(servers[0].url);
    const near = at(session, servers[1]);
    expect((await near.request("ping")).status).toBe(200);
    await services.redis?.kill();
    const begun = HttpSession.open(servers[0].url);
    await expect(begun).rejects.toThrow("503");
    expect((await near.request("ping")).status).toBe(503);
    await until(
      async () => (await session.request("ping")).status,
      (status) => status === 503,
    );
    await services.redis?.start();
    for (const each of [session, near])
      await until(
        async () => (await each.request("ping")).status,
        (status) => status === 200,
      );
    expect(await HttpSession.open(servers[1].url)).toMatchObject({ version: "2025-11-25" });
  });

  test("are written again when Redis has lost its memory, and outlive their server after that too", async () => {
    const home = await services.start({ config: CONFIG });
    const session = await HttpSession.open(home.url);
    const stream = await session.listen();
    await session.call("announce", { list: "tools" });
    const { id = "" } = await stream.event(({ data }) => data.includes("tools/list_changed"));
    await session.call("announce", { list: "prompts" });
    await stream.message(({ method }) => method === "notifications/prompts/list_changed");
    await services.redis?.forget();
    const keys = (): Promise<readonly string[]> => services.redis?.keys("owlclaw:session:*") ?? Promise.resolve([]);
    await until(keys, (names) => names.length >= 2);
    home.child.kill("SIGKILL");
    const next = await at(session, servers[0]).listen(id);
    expect(await next.message(() => true)).toMatchObject({ method: "notifications/prompts/list_changed" });
  });

  test("leave nothing behind in Redis when they end, and nothing that somebody could read while they live", async () => {
    const session = await HttpSession.open(servers[0].url);
    const before = await services.redis?.keys("owlclaw:session:*");
    const params = { name: "echo", arguments: { text: "walls have ears" }, _meta: { progressToken: "p" } };
    await session.send({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    const call = await hold(session, "walls have ears");
    await call.event(({ data }) => data.includes("holding"));
    await until(
      async () => services.redis?.keys("owlclaw:session:*"),
      (names) => (names?.length ?? 0) > (before?.length ?? 0),
    );
    const dump = await services.redis?.dump("owlclaw:session:*");
    expect(dump).not.toMatch(/walls|holding|anonymous|progress|clientInfo/);
    expect(dump).not.toContain(session.id);
    await session.delete();
    await until(
      async () => services.redis?.keys("owlclaw:session:*"),
      (names) => (names?.length ?? 0) < (before?.length ?? 0),
    );
  });
});
