import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { SECRET, token } from "../integration/governance-lab.ts";
import { NETWORK_MISSING } from "../setup/mandatory.ts";
import { callTool, eventually, openResponse, RawConnection, rpc, send, statuses } from "./http-client.ts";
import { HANDLERS, type HttpServerProcess, type ServerOptions, startHttp } from "./server.ts";

const STALLED_HEAD = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-A: ";
const AUTH = { enabled: true, jwt: { secret: SECRET } };

let server: HttpServerProcess | undefined;
const attackers: { destroy(): unknown }[] = [];

afterEach(async () => {
  for (const attacker of attackers.splice(0)) attacker.destroy();
  await server?.stop();
  server = undefined;
});

async function start(options: ServerOptions): Promise<HttpServerProcess> {
  server = await startHttp({
    ...options,
    // The tool that tells the vitals must tell those of the server itself.
    config: { handlers: { paths: [HANDLERS], isolation: "none" }, ...options.config },
  });
  return server;
}

/** A client that sends the text, never reads, and never closes its side. */
async function stall(port: number, text: string): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  attackers.push(socket);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(text);
  return socket;
}

async function openSockets(origin: string): Promise<number> {
  return (await callTool(origin, "vitals")).json.result.structuredContent.sockets;
}

async function expectServed(origin: string, bearer?: string): Promise<void> {
  expect((await send(`${origin}/health`)).status).toBe(200);
  const as = bearer === undefined ? {} : { token: bearer };
  expect((await callTool(origin, "echo", { text: "in" }, as)).json.result.content[0].text).toBe("in");
}

function stream(origin: string, bearer: string): Promise<{ statusCode?: number | undefined; destroy(): unknown }> {
  return openResponse(`${origin}/mcp/sse`, { headers: { authorization: `Bearer ${bearer}` } });
}

/** Opens event streams as one client until the server refuses one, and says how many it got. */
async function openStreams(origin: string, bearer: string, most: number): Promise<number> {
  for (let count = 0; count < most; count++) {
    const response = await stream(origin, bearer);
    attackers.push(response);
    if (response.statusCode !== 200) return count;
  }
  return most;
}

test("two connections from one port do not void the limits when they end", async () => {
  const { port, origin } = await start({
    args: ["--host", "0.0.0.0", "--allow-unauthenticated"],
    config: { http: { maxConnections: 40 } },
  });
  const first = connect({ port, host: "127.0.0.1", localAddress: "127.0.0.1", localPort: 0 });
  attackers.push(first);
  await once(first, "connect");
  const second = connect({ port, host: "127.0.0.2", localAddress: "127.0.0.1", localPort: Number(first.localPort) });
  attackers.push(second);
  await once(second, "connect");
  for (const socket of [first, second]) {
    socket.destroy();
    await once(socket, "close");
  }
  for (let count = 0; count < 100; count++) await stall(port, STALLED_HEAD);
  await eventually(
    () => openSockets(origin),
    (count) => count < 60,
  );
  await expectServed(origin);
  expect(await openSockets(origin)).toBeLessThan(60);
});

describe("clients that do not finish their requests", () => {
  /** The long run has the limit that servers have by themselves. */
  const LIMIT = process.env["OWLCLAW_TEST_LONG"] === "1" ? 1000 : 100;

  async function stallMany(port: number, upTo: number): Promise<void> {
    while (attackers.length < upTo) await Promise.all(Array.from({ length: 30 }, () => stall(port, STALLED_HEAD)));
  }

  test("cost a slow client nothing below the limit, and above it neither health checks nor other clients", async () => {
    const { port, origin } = await start({ config: { http: { maxConnections: LIMIT } } });
    const honest = await RawConnection.open(port);
    honest.write("GET /health HTTP/1.1\r\nHost: localhost\r\n");
    await stallMany(port, 0.9 * LIMIT);
    honest.write("Connection: close\r\n\r\n");
    expect(statuses(await honest.closed)).toEqual([200]);
    await stallMany(port, 2 * LIMIT);
    await expectServed(origin);
  });
});

describe("clients that neither read nor close", () => {
  let port: number;
  let origin: string;
  let patient: HttpServerProcess;
  beforeAll(async () => {
    patient = await startHttp({
      config: {
        handlers: { paths: [HANDLERS], isolation: "none" },
        http: { headersTimeoutSeconds: 1, requestTimeoutSeconds: 1 },
        tools: { maxResultChars: 40_000_000 },
      },
    });
    ({ port, origin } = patient);
  });
  afterAll(() => patient.stop());

  test.each([
    ["stalled headers, refused with 408", STALLED_HEAD],
    ["no HTTP, refused with 400", "nonsense\r\n\r\n"],
    ["headers that are too long, refused with 431", `${STALLED_HEAD}${"x".repeat(64 * 1024)}\r\n\r\n`],
    ["a stalled body, refused with 408", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"],
    ["nothing at all", ""],
  ])("keep no connection: %s", async (_name, text) => {
    const before = await openSockets(origin);
    await Promise.all(Array.from({ length: 20 }, () => stall(port, text)));
    const after = await eventually(
      () => openSockets(origin),
      (count) => count <= before,
    );
    expect(after).toBeLessThanOrEqual(before);
    await expectServed(origin);
  });

  test("keep none for a long answer either", async () => {
    const before = await openSockets(origin);
    const params = { name: "big", arguments: { chars: 16 * 1024 * 1024 } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    const head = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    await Promise.all(Array.from({ length: 2 }, () => stall(port, `${head}\r\n\r\n${body}`)));
    await eventually(
      () => openSockets(origin),
      (count) => count >= before + 2,
    );
    const after = await eventually(
      () => openSockets(origin),
      (count) => count <= before,
    );
    expect(after).toBeLessThanOrEqual(before);
  });
});

describe("clients that hold event streams", () => {
  test("one client gets as many as http.maxConnectionsPerClient, and others are served", async () => {
    const http = { maxConnections: 100, maxConnectionsPerClient: 20 };
    const { origin } = await start({ config: { http, auth: AUTH } });
    const [mallory, ada] = await Promise.all([token("mallory"), token("ada")]);
    expect(await openStreams(origin, mallory, 100)).toBe(20);
    const refused = await rpc(origin, "ping", {}, { token: mallory });
    expect(refused.status).toBe(429);
    expect(refused.text).toContain("http.maxConnectionsPerClient");
    await expectServed(origin, ada);
    for (const held of attackers.splice(0)) held.destroy();
    await eventually(
      () => rpc(origin, "ping", {}, { token: mallory }),
      ({ status }) => status === 200,
    );
  });

  test("many clients together leave connections for health checks and operators", async () => {
    const http = { maxConnections: 40, maxConnectionsPerClient: 10 };
    const { origin } = await start({ config: { http, auth: AUTH } });
    const clients = await Promise.all(["a", "b", "c", "d"].map((name) => token(name)));
    let held = 0;
    for (const client of clients) held += await openStreams(origin, client, 10);
    expect(held).toBe(38);
    const bearer = await token("late");
    const refused = await rpc(origin, "ping", {}, { token: bearer });
    expect([refused.status, refused.headers["retry-after"], refused.headers.connection]).toEqual([503, "1", "close"]);
    expect((await send(`${origin}/health`)).status).toBe(200);
    expect((await send(`${origin}/dashboard/`)).status).toBe(200);
    const admin = await token("root", { scope: "owlclaw:admin" });
    expect((await rpc(origin, "ping", {}, { token: admin })).status).toBe(200);
    attackers.shift()?.destroy();
    await eventually(
      () => rpc(origin, "ping", {}, { token: bearer }),
      ({ status }) => status === 200,
    );
  });
});

/** From an address that is not loopback: counts the connections that the server keeps, then asks as another address. */
const FROM_ELSEWHERE = `
const { connect } = require("node:net");
const port = Number(process.argv[1]);
const open = (localAddress) => new Promise((resolve) => {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.on("error", () => undefined).once("connect", () => resolve(socket)).once("close", () => (socket.isClosed = true));
});
(async () => {
  const sockets = [];
  for (let i = 0; i < 60; i++) sockets.push(await open("198.51.100.1"));
  const other = await open("198.51.100.2");
  let answer = "";
  other.write("GET /health HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n");
  for await (const chunk of other) answer += chunk;
  console.log(JSON.stringify({ kept: sockets.filter((socket) => !socket.isClosed).length, answer: answer.slice(0, 12) }));
  process.exit();
})();
`;

test("one address keeps as many connections as http.maxConnectionsPerAddress", async (context) => {
  if (NETWORK_MISSING !== undefined) context.skip(NETWORK_MISSING);
  const network = `ip link set lo up; ip addr add 198.51.100.1/32 dev lo; ip addr add 198.51.100.2/32 dev lo; exec "$@"`;
  const { port, child } = await start({
    config: { http: { maxConnections: 40, maxConnectionsPerAddress: 10 } },
    within: ["unshare", "--net", "--", "sh", "-c", network, "sh"],
  });
  const script = ["--net", `--target=${child.pid}`, process.execPath, "-e", FROM_ELSEWHERE, String(port)];
  const { stdout } = await promisify(execFile)("nsenter", script);
  expect(JSON.parse(stdout)).toEqual({ kept: 10, answer: "HTTP/1.1 200" });
});
