import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DEFAULT_CONFIG } from "../../src/config/schema.ts";
import { freePort } from "../services/free-port.ts";
import { type HttpServer, startHttp } from "./harness.ts";
import { HttpSession, plain, plainCall, post, SseLine } from "./http-client.ts";
import { StdioLine } from "./stdio-line.ts";
import { type JsonRpcAnswer, text } from "./wire-messages.ts";

let server: HttpServer;

beforeAll(async () => {
  server = await startHttp();
});

afterAll(() => server.stop());

/** What the first revision of the protocol has a client ask. */
const REQUESTS: readonly (readonly [
  method: string,
  params: Record<string, unknown>,
  result: Record<string, unknown>,
])[] = [
  ["ping", {}, {}],
  ["tools/list", {}, { tools: expect.any(Array) }],
  ["tools/call", { name: "echo", arguments: { text: "hi" } }, { content: [{ type: "text", text: "hi" }] }],
  ["resources/list", {}, { resources: expect.any(Array) }],
  ["resources/templates/list", {}, { resourceTemplates: expect.any(Array) }],
  ["resources/read", { uri: "fixture://greeting" }, { contents: [expect.objectContaining({ text: "hello" })] }],
  ["resources/subscribe", { uri: "fixture://counter" }, {}],
  ["resources/unsubscribe", { uri: "fixture://counter" }, {}],
  ["prompts/list", {}, { prompts: expect.any(Array) }],
  ["prompts/get", { name: "hello" }, { messages: [expect.objectContaining({ role: "user" })] }],
  ["logging/setLevel", { level: "info" }, {}],
  [
    "completion/complete",
    { ref: { type: "ref/prompt", name: "review" }, argument: { name: "language", value: "" } },
    { completion: { values: ["typescript", "python"], total: 2, hasMore: false } },
  ],
];

describe("every message of the first revision", () => {
  test("[004-R1.1] [004-R1.2] [004-R1.10] is served over stdio, with jsonrpc 2.0 and the id of the request", async () => {
    const line = new StdioLine();
    await line.initialize("2024-11-05");
    for (const [index, [method, params, result]] of REQUESTS.entries()) {
      const id = `request ${index}`;
      line.send({ jsonrpc: "2.0", id, method, params });
      expect(await line.answer(id)).toEqual({ jsonrpc: "2.0", id, result: expect.objectContaining(result) });
    }
    line.send({ jsonrpc: "2.0", method: "notifications/roots/list_changed" });
    line.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "nobody" } });
    line.send({ jsonrpc: "2.0", method: "notifications/unknown" });
    await line.request("ping");
    // One answer for each request and none for a notification.
    expect(line.received).toHaveLength(REQUESTS.length + 2);
    await line.finish();
  });

  test("[004-R1.1] is served over HTTP and over SSE", async () => {
    const session = await HttpSession.open(server.url, { version: "2024-11-05" });
    const line = await SseLine.open(server.origin);
    await line.initialize();
    for (const [method, params, result] of REQUESTS) {
      expect((await session.request(method, params)).body.result).toEqual(expect.objectContaining(result));
      expect((await line.request(method, params)).result).toEqual(expect.objectContaining(result));
    }
    line.stream.close();
    await session.delete();
  });
});

describe("the HTTP door", () => {
  test("[004-R3.1] [003-FR-001a] [003-FR-001d] [004-R3.3] --transport http serves JSON-RPC at POST /mcp", async () => {
    expect(new URL(server.url).pathname).toBe("/mcp");
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    const { status, body } = await plainCall(server.url, "echo", { text: "over HTTP" });
    expect([status, text(body)]).toEqual([200, "over HTTP"]);
    const elsewhere = await post(`${server.origin}/`, '{"jsonrpc":"2.0","id":1,"method":"ping"}');
    expect(elsewhere.status).toBe(404);
  });

  test("[004-R3.2] it listens on the port it is told, 8080 by default", async () => {
    expect(DEFAULT_CONFIG.http.port).toBe(8080);
    const port = await freePort();
    const chosen = await startHttp({ config: { http: { port } } });
    expect(chosen.url).toBe(`http://127.0.0.1:${port}/mcp`);
    expect((await plain(chosen.url, "ping")).body.result).toEqual({});
    await chosen.stop();
  });

  test("every line on stderr is a JSON log line", async () => {
    const quiet = await startHttp();
    await plain(quiet.url, "ping");
    await quiet.stop();
    expect(quiet.logs).toHaveLength(quiet.stderr.length);
  });

  test("a second server on the same port says what is wrong and ends with an error", async () => {
    const port = Number(new URL(server.url).port);
    await expect(startHttp({ config: { http: { port } } })).rejects.toThrow(/in use/);
  });
});

describe("the handshake", () => {
  test("a second initialize on the same line is refused, and the first one stands", async () => {
    const params = { protocolVersion: "2024-11-05", capabilities: {}, clientInfo: { name: "x", version: "1" } };
    const session = await HttpSession.open(server.url, { version: "2025-06-18" });
    expect((await session.request("initialize", params)).body.error?.code).toBe(-32600);
    expect((await session.call("who_am_i")).body.result?.["structuredContent"].protocolVersion).toBe("2025-06-18");
    const line = new StdioLine();
    await line.initialize("2025-06-18");
    expect((await line.request("initialize", params)).error?.code).toBe(-32600);
    await line.finish();
    await session.delete();
  });

  test("requests before initialize are served as those of a plain client over stdio", async () => {
    const line = new StdioLine();
    expect(text(await line.request("tools/call", { name: "echo", arguments: { text: "early" } }))).toBe("early");
    expect((await line.initialize("2025-06-18")).result?.["protocolVersion"]).toBe("2025-06-18");
    await line.finish();
  });

  test("a batch over stdio is answered in one line in 2025-03-26, and refused in 2025-11-25", async () => {
    const batch = [
      { jsonrpc: "2.0", id: "a", method: "ping" },
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", id: "b", method: "no/such" },
    ];
    const old = new StdioLine();
    await old.initialize("2025-03-26");
    old.send(batch);
    expect((await old.answer("a")).result).toEqual({});
    expect((await old.answer("b")).error?.code).toBe(-32601);
    old.write("[]\n");
    expect((await old.answer(null)).error?.code).toBe(-32600);
    await old.finish();
    const current = new StdioLine();
    await current.initialize("2025-11-25");
    current.send(batch);
    expect((await current.answer(null)).error?.code).toBe(-32600);
    await current.finish();
  });

  test("versions that we do not speak are refused over stdio and SSE, with the list and a trace id", async () => {
    const stdio = new StdioLine();
    const sse = await SseLine.open(server.origin);
    const params = { protocolVersion: "2023-01-01", capabilities: {}, clientInfo: { name: "x", version: "1" } };
    for (const { error } of [
      await stdio.request("initialize", params),
      await sse.request("initialize", params),
    ] as JsonRpcAnswer[]) {
      expect(error?.data).toMatchObject({
        kind: "unsupported_version",
        supported: expect.arrayContaining(["2025-11-25"]),
        trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
      });
    }
    sse.stream.close();
    await stdio.finish();
  });
});
