import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  callTool,
  eventually,
  openResponse,
  openSession,
  RawConnection,
  rpc,
  send,
  statuses,
} from "../escape/http-client.ts";
import { type HttpServerProcess, startHttp } from "../escape/server.ts";

const PING = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
const PONG = '"result":{}';

let server: HttpServerProcess;
beforeAll(async () => {
  server = await startHttp({
    config: { http: { headersTimeoutSeconds: 1, requestTimeoutSeconds: 2, maxBodyBytes: 65_536 } },
  });
});
afterAll(() => server.stop());

/** What the server answers to exactly these bytes, until it closes the connection. */
async function exchange(text: string | Buffer): Promise<string> {
  const connection = await RawConnection.open(server.port);
  connection.write(text);
  return connection.closed;
}

function head(
  lines: readonly string[],
  { target = "/mcp", method = "POST", host = `127.0.0.1:${server.port}` } = {},
): string {
  return [`${method} ${target} HTTP/1.1`, `Host: ${host}`, ...lines, "", ""].join("\r\n");
}

function request(body: string, options: Parameters<typeof head>[1] = {}, lines: readonly string[] = []): string {
  return head(["Connection: close", `Content-Length: ${Buffer.byteLength(body)}`, ...lines], options) + body;
}

async function expectHealthy(): Promise<void> {
  expect((await callTool(server.origin, "echo", { text: "still here" })).json.result.content[0].text).toBe(
    "still here",
  );
}

describe("DNS rebinding: the Host header", () => {
  test.each([
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.example:80",
    "localhost@evil.example",
    "evil.example#localhost",
    "[::1].evil.example",
    "0.0.0.0",
    "192.168.0.1",
    "2130706433",
    "",
  ])("is refused when it is %j", async (host) => {
    const received = await exchange(request(PING, { host }));
    expect(statuses(received)).toEqual([expect.toSatisfy((status: number) => status === 403 || status === 400)]);
    expect(received).not.toContain(PONG);
  });

  test.each(["localhost", "LOCALHOST", "127.0.0.1", "[::1]", "localhost:1"])("is accepted as %s", async (host) => {
    expect(await exchange(request(PING, { host }))).toContain(PONG);
  });

  test("is refused when it is missing, and when it is there twice", async () => {
    const missing = await exchange(
      `POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: ${PING.length}\r\n\r\n${PING}`,
    );
    expect(statuses(missing)[0]).toBe(400);
    const twice = await exchange(request(PING, {}, ["Host: evil.example"]));
    expect(twice).not.toContain(PONG);
  });

  test("guards every route", async () => {
    for (const target of ["/mcp", "/mcp/sse", "/health", "/nothing"]) {
      const received = await exchange(head(["Connection: close"], { target, method: "GET", host: "evil.example" }));
      expect(statuses(received)).toEqual([403]);
    }
  });

  test("takes the names in http.allowedHosts, and only those", async () => {
    const named = await startHttp({ config: { http: { allowedHosts: ["mcp.example.com"] } } });
    try {
      const statusOf = async (host: string): Promise<number> =>
        (await send(`${named.origin}/health`, { headers: { host } })).status;
      expect(await statusOf("mcp.example.com")).toBe(200);
      expect(await statusOf("MCP.example.com:443")).toBe(200);
      expect(await statusOf("mcp.example.com.evil.example")).toBe(403);
    } finally {
      await named.stop();
    }
  });
});

describe("slow clients", () => {
  test("that do not finish their headers are cut off with 408", async () => {
    const connection = await RawConnection.open(server.port);
    const drip = setInterval(() => connection.write("X-A: b\r\n"), 100);
    connection.write(`POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n`);
    const received = await connection.closed;
    clearInterval(drip);
    expect(statuses(received)).toEqual([408]);
    await expectHealthy();
  });

  test("that do not finish their body are cut off with 408", async () => {
    const connection = await RawConnection.open(server.port);
    const drip = setInterval(() => connection.write(" "), 100);
    connection.write(head(["Content-Length: 5000"]));
    const received = await connection.closed;
    clearInterval(drip);
    expect(statuses(received)).toEqual([408]);
    await expectHealthy();
  });

  test("are not held against others: fifty of them, and a call is answered at once", async () => {
    const slow = await Promise.all(Array.from({ length: 50 }, () => RawConnection.open(server.port)));
    for (const connection of slow) connection.write("POST /mcp HTTP/1.1\r\nHost: ");
    await expectHealthy();
    const received = await Promise.all(slow.map(({ closed }) => closed));
    expect(new Set(received.flatMap(statuses))).toEqual(new Set([408]));
  });

  test("that vanish in the middle of a body leave no error in the log", async () => {
    const before = server.log().length;
    const connection = await RawConnection.open(server.port);
    connection.write(`${head(["Content-Length: 5000"])}{`);
    await expectHealthy();
    connection.destroy();
    await connection.closed;
    await expectHealthy();
    expect(server.log().slice(before)).not.toContain('"level":"error"');
  });
});

describe("the connection limit", () => {
  test("refuses a connection when all are in use, and takes new ones when some are closed", async () => {
    const small = await startHttp({ config: { http: { maxConnections: 5 } } });
    try {
      const streams = await Promise.all(Array.from({ length: 4 }, () => openResponse(`${small.origin}/mcp/sse`)));
      const status = (): Promise<number> => rpc(small.origin, "ping").then((answer) => answer.status);
      expect(await status()).toBe(503);
      expect((await send(`${small.origin}/health`)).status).toBe(200);
      for (const stream of streams) stream.destroy();
      expect(await eventually(status, (value) => value === 200)).toBe(200);
    } finally {
      await small.stop();
    }
  });

  test("closes the connection that has waited longest without a request when a new one comes", async () => {
    const small = await startHttp({ config: { http: { maxConnections: 5 } } });
    try {
      const idle: RawConnection[] = [];
      for (let index = 0; index < 5; index++) idle.push(await RawConnection.open(small.port));
      await idle[0]?.closed;
      expect((await send(`${small.origin}/health`)).status).toBe(200);
      await idle[1]?.closed;
      expect(idle.slice(2).map(({ socket }) => socket.destroyed)).toEqual([false, false, false]);
      for (const connection of idle) connection.destroy();
    } finally {
      await small.stop();
    }
  });
});

describe("the body limit", () => {
  const tooMuch = "x".repeat(70_000);

  test("refuses a longer Content-Length before the body is there", async () => {
    const received = await exchange(head(["Content-Length: 70000"]));
    expect(statuses(received)).toEqual([413]);
    expect(received.toLowerCase()).toContain("connection: close");
    expect(received).toContain('"kind":"too_large"');
  });

  test("refuses a longer body in chunks", async () => {
    const chunk = `${tooMuch.length.toString(16)}\r\n${tooMuch}\r\n`;
    const received = await exchange(`${head(["Transfer-Encoding: chunked"])}${chunk}`);
    expect(statuses(received)).toEqual([413]);
  });

  test("holds on POST /mcp/messages too", async () => {
    const stream = await RawConnection.open(server.port);
    stream.write(head([], { target: "/mcp/sse", method: "GET" }));
    const target =
      /\/mcp\/messages\?sessionId=[\w-]+/.exec(
        await stream.until((text) => text.includes("sessionId=") && text.endsWith("\n\n\r\n")),
      )?.[0] ?? "";
    const received = await exchange(head(["Content-Length: 70000"], { target }));
    expect(statuses(received)).toEqual([413]);
    stream.destroy();
  });

  test("lets a body of exactly the limit through", async () => {
    const padded = PING.padEnd(65_536, " ");
    expect(await exchange(request(padded))).toContain(PONG);
    expect(statuses(await exchange(request(`${padded} `)))).toEqual([413]);
  });
});

describe("requests that two readers could read differently", () => {
  const smuggled = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const chunked = `${PING.length.toString(16)}\r\n${PING}\r\n0\r\n\r\n`;

  test.each([
    ["Content-Length and Transfer-Encoding", ["Content-Length: 4", "Transfer-Encoding: chunked"], chunked],
    ["two lengths", ["Content-Length: 4", `Content-Length: ${PING.length}`], PING],
    ["a list of lengths", [`Content-Length: ${PING.length}, ${PING.length}`], PING],
    ["a negative length", ["Content-Length: -1"], PING],
    ["a length with a sign", [`Content-Length: +${PING.length}`], PING],
    ["a length in hexadecimal", ["Content-Length: 0x10"], PING],
    ["a length with a space before the colon", [`Content-Length : ${PING.length}`], PING],
    ["a folded length", ["Content-Length:", ` ${PING.length}`], PING],
    ["an unknown transfer coding", ["Transfer-Encoding: xchunked"], chunked],
    ["chunked that is not last", ["Transfer-Encoding: chunked, identity"], chunked],
    ["a chunk size with a sign", ["Transfer-Encoding: chunked"], `+${chunked}`],
    ["a chunk size of many digits", ["Transfer-Encoding: chunked"], `${"f".repeat(20)}\r\n${PING}`],
    ["a bare line feed after the chunk", ["Transfer-Encoding: chunked"], `${PING.length.toString(16)}\n${PING}\n0\n\n`],
    ["NUL in a header", ["X-A: a\u0000b", `Content-Length: ${PING.length}`], PING],
    ["a bare CR in a header", ["X-A: a\rX-B: b", `Content-Length: ${PING.length}`], PING],
    ["an empty header name", [": a", `Content-Length: ${PING.length}`], PING],
  ])("are refused and the connection closed: %s", async (_name, lines, body) => {
    const received = await exchange(`${head(lines)}${body}${smuggled}`);
    expect(statuses(received)).toEqual([400]);
    expect(received).not.toContain('"status":"ok"');
  });

  test("a length that is too short leaves a rest that is no request", async () => {
    const received = await exchange(`${head(["Content-Length: 5"])}${PING}`);
    expect(received).not.toContain(PONG);
    expect(statuses(received).at(-1)).toBe(400);
  });

  test("a length that is too long waits, and then is 408", async () => {
    expect(statuses(await exchange(head([`Content-Length: ${PING.length + 1}`]) + PING))).toEqual([408]);
  });

  test("a refused body that was not read is never taken for a request", async () => {
    const body = `${"x".repeat(70_000)}${smuggled}`;
    const received = await exchange(head([`Content-Length: ${body.length}`]) + body);
    expect(statuses(received)).toEqual([413]);
  });
});

describe("pipelined requests", () => {
  test("are answered in order", async () => {
    const body = (id: number): string => JSON.stringify({ jsonrpc: "2.0", id, method: "ping" });
    const ids = Array.from({ length: 50 }, (_, index) => index);
    const all = ids.map((id) => head([`Content-Length: ${body(id).length}`]) + body(id)).join("");
    const connection = await RawConnection.open(server.port);
    connection.write(all + head(["Connection: close"], { method: "GET", target: "/health" }));
    const received = await connection.closed;
    expect([...received.matchAll(/"id":(\d+)/g)].map((match) => Number(match[1]))).toEqual(ids);
  });
});

describe("headers", () => {
  test("that are huge get 431", async () => {
    const received = await exchange(head([`X-Big: ${"x".repeat(64 * 1024)}`]));
    expect(statuses(received)).toEqual([431]);
    await expectHealthy();
  });

  test("that are many get an answer and do no harm", async () => {
    const many = Array.from({ length: 3000 }, (_, index) => `X-${index}: a`);
    const received = await exchange(request(PING, {}, many));
    expect([200, 400, 431]).toContain(statuses(received)[0]);
    await expectHealthy();
  });

  test.each([
    ["a line break", "a\\r\\nSet-Cookie: b"],
    ["bytes beyond ASCII", "\u00fc\u00ff\u0080"],
    ["very many characters", "x".repeat(20_000)],
    ["terminal controls", "\u001b[2J"],
  ])("X-MCP-Client-ID with %s comes back nowhere", async (_name, label) => {
    const received = await exchange(Buffer.from(request(PING, {}, [`X-MCP-Client-ID: ${label}`]), "latin1"));
    expect(received.toLowerCase()).not.toContain("set-cookie");
    expect(received).not.toContain(label.slice(0, 64));
    expect(server.log()).not.toContain("\u001b[2J");
    await expectHealthy();
  });

  test("a traceparent of the client is taken over only when it is one", async () => {
    const traceOf = async (traceparent: string): Promise<unknown> =>
      (await send(`${server.origin}/health`, { headers: { traceparent } })).headers["x-trace-id"];
    const id = "0af7651916cd43dd8448eb211c80319c";
    expect(await traceOf(`00-${id}-b7ad6b7169203331-01`)).toBe(id);
    for (const bad of ["x", `00-${id}-b7ad6b7169203331-01 <script>`, `00-${"0".repeat(32)}-b7ad6b7169203331-01`])
      expect(await traceOf(bad)).toMatch(/^(?!0{32})[0-9a-f]{32}$/);
  });

  test.each([
    ["no Host", "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n", 400],
    [
      "an expectation that nobody knows",
      "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: nonsense\r\nConnection: close\r\n\r\n",
      417,
    ],
  ])("what Node answers by itself has a trace id, too: %s", async (_name, text, status) => {
    const answer = await exchange(text);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer.match(/^x-trace-id: [0-9a-f]{32}\r$/gim)).toHaveLength(1);
  });
});

describe("targets", () => {
  const reached = async (target: string): Promise<boolean> =>
    (await exchange(request(PING, { target }))).includes(PONG);

  test.each([
    "//mcp",
    "//evil.example/mcp",
    "///mcp",
    "/mcp/",
    "/MCP",
    "/%6dcp",
    "/mcp%2f",
    "/mcp%00",
    "/mcp;a=b",
    "/./mcp%2f..",
    "\\\\evil.example\\mcp",
    "/mcp/%2e%2e/mcp/",
    "*",
    "http://evil.example/mcp",
    "https://evil.example/mcp",
    "http://[/mcp",
    "http://",
    "mcp",
  ])("%s is not the endpoint", async (target) => {
    const received = await exchange(request(PING, { target }));
    expect(received).not.toContain(PONG);
    expect(statuses(received)).toEqual([expect.toSatisfy((status: number) => status >= 400 && status < 500)]);
  });

  test("a query changes nothing", async () => {
    expect(await reached("/mcp?a=b&c=/../health")).toBe(true);
  });

  test("an absolute target that names this server is the endpoint", async () => {
    expect(await reached(`http://127.0.0.1:${server.port}/mcp`)).toBe(true);
  });
});

describe("old and odd HTTP", () => {
  test("HTTP/1.0 with a Host is answered and closed", async () => {
    const received = await exchange(
      `POST /mcp HTTP/1.0\r\nHost: localhost\r\nContent-Length: ${PING.length}\r\n\r\n${PING}`,
    );
    expect(received).toContain(PONG);
  });

  test("HTTP/1.0 without a Host is refused", async () => {
    const received = await exchange(`POST /mcp HTTP/1.0\r\nContent-Length: ${PING.length}\r\n\r\n${PING}`);
    expect(received).not.toContain(PONG);
  });

  test.each(["HTTP/1.9", "HTTP/3.0", "HTTQ/1.1"])("%s is refused", async (version) => {
    const received = await exchange(
      `POST /mcp ${version}\r\nHost: localhost\r\nContent-Length: ${PING.length}\r\n\r\n${PING}`,
    );
    expect(received).not.toContain(PONG);
    await expectHealthy();
  });

  test.each(["PUT", "PATCH", "TRACE", "HEAD", "PROPFIND", "BREW"])(
    "[001-http] %s gets 405 with Allow, or 400",
    async (method) => {
      const received = await exchange(head(["Connection: close", "Content-Length: 0"], { method }));
      const [status] = statuses(received);
      expect([405, 400]).toContain(status);
      expect(status === 400 || /allow: .*POST/i.test(received)).toBe(true);
    },
  );

  test("CONNECT and Upgrade open no tunnel", async () => {
    const tunnel = await exchange(`CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    expect(statuses(tunnel).filter((status) => status < 300)).toEqual([]);
    const upgraded = await exchange(request(PING, {}, ["Upgrade: websocket", "Sec-WebSocket-Key: x"]));
    expect(statuses(upgraded)).not.toContain(101);
    await expectHealthy();
  });

  test("Expect: 100-continue is answered", async () => {
    const connection = await RawConnection.open(server.port);
    connection.write(head(["Connection: close", "Expect: 100-continue", `Content-Length: ${PING.length}`]));
    await connection.until((text) => text.includes("100 Continue"));
    connection.write(PING);
    expect(await connection.closed).toContain(PONG);
  });

  test("binary rubbish is refused and does no harm", async () => {
    for (const bytes of [
      Buffer.alloc(2048, 0xff),
      Buffer.from([0x16, 3, 1, 2, 0, 1, 0]),
      Buffer.from("\r\n\r\n\r\nGE"),
    ]) {
      const connection = await RawConnection.open(server.port);
      connection.write(bytes);
      connection.socket.end();
      expect(statuses(await connection.closed).filter((status) => status < 400)).toEqual([]);
    }
    await expectHealthy();
  });
});

test("errors carry no stack and no path of the machine", async () => {
  const answers = [
    await send(`${server.origin}/nothing`),
    await rpc(server.origin, "tools/call", { name: "fails", arguments: { how: "error" } }),
    await send(`${server.origin}/mcp`, { method: "POST", body: "{" }),
    await rpc(server.origin, "ping", {}, { headers: { "mcp-session-id": "../../etc/passwd" } }),
  ];
  for (const { text } of answers) expect(text).not.toMatch(/node_modules|\.ts:|\.js:|stack|at async/);
  await openSession(server.origin);
});
