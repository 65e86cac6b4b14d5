import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exchange, get, openTunnel, readAll } from "./egress/raw-client.ts";
import { PLACES } from "./egress/places.ts";
import { startWorld, type World } from "./egress/world.ts";
import { eventually } from "../escape/http-client.ts";

let world: World;

beforeAll(async () => {
  world = await startWorld();
});

afterAll(() => world.stop());

const GOOD = "good.test";
const DNS = { [GOOD]: [[PLACES.public]] };

async function openListener(more: Partial<Parameters<World["open"]>[0]> = {}): Promise<string> {
  return await world.open({ allow: [GOOD], dns: DNS, ...more });
}

describe("a second request behind the first", () => {
  const first = `GET http://${GOOD}/first HTTP/1.1\r\nHost: ${GOOD}\r\n`;
  // To an allowed host, so that nothing but the framing stops it.
  const second = `GET http://${GOOD}/smuggled HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`;
  const cases = [
    ["pipelined", `${first}\r\n${second}`],
    ["a tunnel behind it", `${first}\r\nCONNECT ${GOOD}:443 HTTP/1.1\r\nHost: ${GOOD}:443\r\n\r\n`],
    [
      "with both lengths",
      `POST http://${GOOD}/first HTTP/1.1\r\nHost: ${GOOD}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${second}`,
    ],
    [
      "with two lengths",
      `POST http://${GOOD}/first HTTP/1.1\r\nHost: ${GOOD}\r\nContent-Length: 0\r\nContent-Length: 99\r\n\r\n${second}`,
    ],
    [
      "with a disguised encoding",
      `POST http://${GOOD}/first HTTP/1.1\r\nHost: ${GOOD}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${second}`,
    ],
    [
      "with a space before the colon",
      `POST http://${GOOD}/first HTTP/1.1\r\nHost: ${GOOD}\r\nContent-Length : 0\r\n\r\n${second}`,
    ],
    [
      "with a folded header",
      `POST http://${GOOD}/first HTTP/1.1\r\nHost: ${GOOD}\r\nX: a\r\n Content-Length: 99\r\n\r\n${second}`,
    ],
    ["with bare line feeds", `POST http://${GOOD}/first HTTP/1.1\nHost: ${GOOD}\nContent-Length: 0\n\n${second}`],
    [
      "with a chunk extension",
      `POST http://${GOOD}/first HTTP/1.1\r\nHost: ${GOOD}\r\nTransfer-Encoding: chunked\r\n\r\n1;a\n\r\nx\r\n0\r\n\r\n${second}`,
    ],
  ] as const;

  test.each(cases)("does not arrive: %s", async (_, bytes) => {
    await world.forgetRequests();
    await exchange(await openListener(), bytes);
    const seen = (await world.hosts()).requests.map(({ url }) => url);
    expect(seen.filter((url) => url !== "/first")).toEqual([]);
    expect(seen.length).toBeLessThanOrEqual(1);
  });

  test("arrives through a proxy that checks the first head and passes the rest on", async () => {
    await world.forgetRequests();
    const path = await openListener({ without: ["framing"] });
    const socket = connect(path);
    socket.write(`${first}\r\nGET /smuggled HTTP/1.1\r\nHost: other.test\r\n\r\n`);
    const seen = await eventually(
      () => world.hosts(),
      ({ requests }) => requests.length === 2,
    );
    socket.destroy();
    expect(seen.requests[1]).toMatchObject({ url: "/smuggled", headers: ["Host", "other.test"] });
  });
});

describe("the head of a request", () => {
  const long = [`X-Long: ${"x".repeat(20_000)}`];
  const many = Array.from({ length: 150 }, (_, index) => `X-${index}: 1`);

  test("is refused when it is too long, and passes when the limit is raised", async () => {
    expect(await get(await openListener(), `http://${GOOD}/`, long)).toMatch(/^HTTP\/1\.1 431 /);
    const raised = await openListener({ limits: { maxHeaderBytes: 32_000 } });
    expect(await get(raised, `http://${GOOD}/`, long)).toMatch(/^HTTP\/1\.1 200 /);
  });

  test("is refused with too many headers, and passes when the limit is raised", async () => {
    expect(await get(await openListener(), `http://${GOOD}/`, many)).toMatch(/^HTTP\/1\.1 431 /);
    const raised = await openListener({ limits: { maxHeaders: 1000 } });
    expect(await get(raised, `http://${GOOD}/`, many)).toMatch(/^HTTP\/1\.1 200 /);
  });

  test("ends the connection when it does not come to its end, and holds it when there is no time-out", async () => {
    const slow = async (listener: string): Promise<Socket> => {
      const socket = connect(listener);
      socket.write(`GET http://${GOOD}/ HTTP/1.1\r\nHost: `);
      return socket;
    };
    const held = await slow(await openListener({ limits: { headerTimeoutMs: 600_000 } }));
    expect(await readAll(await slow(await openListener({ limits: { headerTimeoutMs: 200 } })))).toMatch(
      /^HTTP\/1\.1 408 /,
    );
    expect(held.closed).toBe(false);
    held.destroy();
  });

  test("ends the connection when it never begins", async () => {
    const listener = await openListener({ limits: { headerTimeoutMs: 200 } });
    expect(await readAll(connect(listener))).toMatch(/^HTTP\/1\.1 408 /);
  });
});

describe("many connections", () => {
  async function flood(listener: string, count: number): Promise<{ open: number; end: () => void }> {
    const tunnels = await Promise.all(Array.from({ length: count }, () => openTunnel(listener, `${GOOD}:80`)));
    const open = tunnels.filter(({ status }) => status === 200);
    return { open: open.length, end: () => open.forEach(({ socket }) => socket.destroy()) };
  }

  test("stop at the sandbox's limit, are free again when they end, and go on when the limit is raised", async () => {
    const listener = await openListener({ limits: { maxConnections: 8 } });
    const first = await flood(listener, 30);
    expect(first.open).toBe(8);
    first.end();
    await eventually(
      () => world.state(listener),
      ({ openConnections }) => openConnections === 0,
    );
    const raised = await flood(await openListener({ limits: { maxConnections: 100 } }), 30);
    expect(raised.open).toBe(30);
    raised.end();
  });

  test("stop at the limit for all sandboxes with 503", async () => {
    const listener = await openListener({ limits: { maxConnectionsTotal: 3 } });
    const some = await flood(listener, 3);
    expect((await openTunnel(listener, `${GOOD}:80`)).status).toBe(503);
    some.end();
  });
});

test("a huge answer is passed on and counted", async () => {
  const listener = await openListener();
  const bytes = 50 * 1024 * 1024;
  const socket = connect(listener);
  socket.write(`GET http://${GOOD}/huge?bytes=${bytes} HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`);
  let received = 0;
  for await (const chunk of socket) received += (chunk as Buffer).length;
  expect(received).toBeGreaterThan(bytes);
  const state = await eventually(
    () => world.state(listener),
    ({ openConnections }) => openConnections === 0,
  );
  expect(state.bytesReceived).toBeGreaterThan(bytes);
  expect(state.decisions).toMatchObject([
    {
      host: GOOD,
      port: 80,
      address: PLACES.public,
      rule: GOOD,
      allowed: true,
      isOpen: false,
      bytesReceived: state.bytesReceived,
    },
  ]);
});

describe("a client that vanishes frees everything", () => {
  /** Waits until nothing of it is left, on the proxy and on the hosts. */
  async function leftovers(listener: string): Promise<number> {
    const ask = async (): Promise<number> =>
      (await world.state(listener)).openConnections + (await world.hosts()).openConnections;
    return await eventually(ask, (count) => count === 0);
  }

  test("in a tunnel", async () => {
    const listener = await openListener();
    const { socket } = await openTunnel(listener, `${GOOD}:443`);
    expect((await world.state(listener)).openConnections).toBe(1);
    socket.destroy();
    expect(await leftovers(listener)).toBe(0);
  });

  test("in the middle of an answer that it does not read", async () => {
    const listener = await openListener();
    const socket = connect(listener);
    socket.write(`GET http://${GOOD}/huge?bytes=500000000 HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`);
    await eventually(
      () => world.state(listener),
      ({ bytesReceived }) => bytesReceived > 0,
    );
    socket.destroy();
    expect(await leftovers(listener)).toBe(0);
  });

  test("while it waits for an answer that does not come", async () => {
    const listener = await openListener();
    const socket = connect(listener);
    socket.write(`GET http://${GOOD}/silent HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`);
    await eventually(
      () => world.state(listener),
      ({ openConnections }) => openConnections === 1,
    );
    socket.destroy();
    expect(await leftovers(listener)).toBe(0);
  });

  test("in the middle of its own request", async () => {
    const listener = await openListener();
    const socket = connect(listener);
    socket.write(`POST http://${GOOD}/ HTTP/1.1\r\nHost: ${GOOD}\r\nContent-Length: 1000\r\n\r\nabc`);
    await eventually(
      () => world.state(listener),
      ({ openConnections }) => openConnections === 1,
    );
    socket.destroy();
    expect(await leftovers(listener)).toBe(0);
  });

  test("and closing the door ends what still runs", async () => {
    const listener = await openListener();
    const { socket } = await openTunnel(listener, `${GOOD}:443`);
    const ended = readAll(socket.resume());
    await world.close(listener);
    await ended;
    await eventually(
      () => world.hosts(),
      ({ openConnections }) => openConnections === 0,
    );
    const late = connect(listener);
    const [error] = await new Promise<[NodeJS.ErrnoException]>((resolve) =>
      late.on("error", (cause) => resolve([cause])),
    );
    expect(error.code).toBe("ENOENT");
  });
});

describe("a host that does not answer", () => {
  test("ends with 504 after the idle time-out", async () => {
    const listener = await openListener({ limits: { idleTimeoutMs: 200 } });
    expect(await get(listener, `http://${GOOD}/silent`)).toMatch(/^HTTP\/1\.1 504 /);
  });

  test("and an idle tunnel is closed", async () => {
    const { socket } = await openTunnel(await openListener({ limits: { idleTimeoutMs: 200 } }), `${GOOD}:80`);
    expect(await readAll(socket.resume())).toBe("");
  });

  test("or has no name is 502, and refuses the connection is 502", async () => {
    expect(await get(await openListener({ dns: {} }), `http://${GOOD}/`)).toMatch(
      /^HTTP\/1\.1 502 [^]*could not be resolved \(ENOTFOUND\)/,
    );
    const listener = await openListener({ allow: [`${GOOD}:81`] });
    expect(await get(listener, `http://${GOOD}:81/`)).toMatch(/^HTTP\/1\.1 502 [^]*ECONNREFUSED/);
  });
});
