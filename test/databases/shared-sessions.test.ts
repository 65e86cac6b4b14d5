import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { startBalancer, startServices, SERVICES_MISSING, type Services } from "../services/cluster.ts";
import { type HttpServer, until } from "../integration/harness.ts";
import { closeStreams, HttpSession, SseLine } from "../integration/http-client.ts";
import { connect, type Door, type Loose, type Progress } from "../integration/sdk-clients.ts";
import { text } from "../integration/wire-messages.ts";

// Databases, and three servers or four, take their time on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const MAX_BODY_BYTES = 200_000;
const CONFIG = {
  http: { maxBodyBytes: MAX_BODY_BYTES },
  governance: { defaults: { callsPerMinute: 100_000, callsPerDay: 0, concurrency: 0 } },
};
const MISSING = SERVICES_MISSING === undefined ? "" : `: ${SERVICES_MISSING}`;
const DOORS: readonly Door[] = [
  { client: "v1", transport: "http", version: "2025-11-25" },
  { client: "v2", transport: "http", version: "2025-11-25" },
  { client: "v2", transport: "http", version: "2025-06-18" },
  { client: "v1", transport: "sse", version: "2025-11-25" },
  { client: "v2", transport: "sse", version: "2024-11-05" },
];

afterEach(() => closeStreams());

describe.skipIf(SERVICES_MISSING !== undefined)(`sessions of servers that share PostgreSQL${MISSING}`, () => {
  let services: Services;
  let servers: [HttpServer, HttpServer, HttpServer];
  let balancer: Awaited<ReturnType<typeof startBalancer>>;

  beforeAll(async () => {
    services = await startServices();
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
    const label = `${door.client}-${door.transport}-${door.version}`;
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
    const stream = await session.at(servers[1].url).open({ jsonrpc: "2.0", id: 7, method: "tools/call", params });
    const { id = "" } = await stream.event(({ data }) => data.includes("holding"));
    stream.close();
    const released = await session.at(servers[2].url).call("release", { label: "resumed" });
    expect(text(released.body)).toContain("true");
    const rest = await session.at(servers[2].url).listen(id);
    await rest.ended();
    expect(rest.messages).toMatchObject([{ id: 7, result: { content: [{ text: "released resumed" }] } }]);
    const again = await session.at(servers[1].url).listen(id.replace(/\d+$/, "0"));
    await again.ended();
    expect(again.messages.map((message) => message.id ?? message.method)).toEqual(["notifications/progress", 7]);
  });

  test("what a call tells comes through in order, and before its answer", async () => {
    const session = await HttpSession.open(servers[0].url);
    const params = { name: "count", arguments: { steps: 100 }, _meta: { progressToken: "p" } };
    const { messages } = await session.at(servers[1].url).send({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    expect(messages.slice(0, -1).map(({ params: told }) => told?.["progress"])).toEqual(
      Array.from({ length: 100 }, (_, index) => index + 1),
    );
    expect(messages.at(-1)).toMatchObject({ id: 1, result: { content: [{ text: "counted to 100" }] } });
  });

  test("one GET stream for a session, however many servers: what belongs to no request comes there", async () => {
    const session = await HttpSession.open(servers[0].url);
    const stream = await session.at(servers[1].url).listen();
    expect(stream.response.status).toBe(200);
    expect((await session.at(servers[2].url).listen()).response.status).toBe(409);
    await session.at(servers[2].url).call("announce", { list: "tools" });
    await stream.message(({ method }) => method === "notifications/tools/list_changed");
    stream.close();
  });

  test("a client that hangs up at one server cancels its call on the other", async () => {
    const session = await HttpSession.open(servers[0].url);
    const controller = new AbortController();
    const params = { name: "hold", arguments: { label: `gone` } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    const headers = { ...session.headers, "content-type": "application/json" };
    const lost = fetch(servers[1].url, { method: "POST", headers, body, signal: controller.signal });
    const observed = async (): Promise<Loose> =>
      (await session.at(servers[2].url).call("observe", { label: `gone` })).body.result?.["structuredContent"];
    await until(observed, ({ started }) => started === true);
    controller.abort();
    await expect(lost).rejects.toThrow("aborted");
    await until(observed, ({ aborted }) => aborted === true);
  });

  test("a session that is ended through one server is ended on all, and one that never was is not found", async () => {
    const session = await HttpSession.open(servers[0].url);
    expect((await session.at(servers[1].url).request("ping")).status).toBe(200);
    expect((await session.at(servers[2].url).delete()).status).toBe(204);
    for (const server of servers) expect((await session.at(server.url).request("ping")).status).toBe(404);
    for (const id of ["nonsense", `AAAAAAAAAAAA.${"A".repeat(32)}`, session.id.replace(/.$/, "_")]) {
      const invented = Object.assign(session.at(servers[1].url), { id });
      const { status, body } = await invented.request("ping");
      expect({ status, kind: body.error?.data?.["kind"] }).toEqual({ status: 404, kind: "session_not_found" });
    }
  });

  test("answers that are no streams come back as they are: status, headers, errors", async () => {
    const session = await HttpSession.open(servers[0].url);
    const near = session.at(servers[1].url);
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

  test("a body may be as large as at the server itself, whatever is in it, and no larger", async () => {
    const session = await HttpSession.open(servers[0].url);
    const said = '"'.repeat(MAX_BODY_BYTES / 2 - 500);
    const { body } = await session.at(servers[1].url).call("typed", { text: said, count: 1 });
    expect(body.result?.["isError"]).not.toBe(true);
    const larger = await session.at(servers[1].url).call("echo", { text: "x".repeat(MAX_BODY_BYTES) });
    expect(larger.status).toBe(413);
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
    const stream = await session.at(near.url).listen();
    const held = session.at(near.url).call("hold", { label: `stop` });
    const observed = async (): Promise<Loose> =>
      (await session.call("observe", { label: `stop` })).body.result?.["structuredContent"];
    await until(observed, ({ started }) => started === true);
    near.child.kill("SIGTERM");
    await near.logged("stopping");
    await session.call("release", { label: `stop` });
    expect(text((await held).body)).toBe(`released stop`);
    await stream.ended();
    await near.exitedWell();
  });
});
