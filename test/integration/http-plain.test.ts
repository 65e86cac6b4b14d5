import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BOTH, plain, plainCall, post, postJson } from "./http-client.ts";
import { type HttpServer, startHttp } from "./harness.ts";
import { CLIENT_INFO, expectedData, type JsonRpcAnswer, text, WITH_QUOTA } from "./wire-messages.ts";

let server: HttpServer;
let url: string;

beforeAll(async () => {
  server = await startHttp({ config: { http: { maxBodyBytes: 10_000 } } });
  ({ url } = server);
});

afterAll(() => server.stop());

const ping = (id: number | string): object => ({ jsonrpc: "2.0", id, method: "ping" });
const echo = (id: number, said: string): object => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name: "echo", arguments: { text: said } },
});

describe("plain JSON-RPC over POST /mcp", () => {
  test.each([undefined, "application/json", "*/*", BOTH, "text/event-stream", "text/html", "nonsense"])(
    "[000-R1.5] [000-R5.1] [004-R3.7] is answered as application/json with Accept: %s",
    async (accept) => {
      const { status, headers, body } = await rawPost(
        JSON.stringify(echo(1, "hi")),
        accept === undefined ? {} : { accept },
      );
      expect(status).toBe(200);
      expect(headers["content-type"]).toBe("application/json");
      expect(body).toEqual({
        jsonrpc: "2.0",
        id: 1,
        result: { content: [{ type: "text", text: "hi" }], ...WITH_QUOTA },
      });
    },
  );

  test("[000-R1.1] [004-R13.1] the method and the parameters of the message decide what is done", async () => {
    expect(text((await plainCall(url, "echo", { text: "one" })).body)).toBe("one");
    expect((await plainCall(url, "add", { a: 2, b: 3 })).body.result).toMatchObject({ structuredContent: { sum: 5 } });
    expect((await plain(url, "resources/read", { uri: "fixture://greeting" })).body.result).toEqual({
      contents: [{ uri: "fixture://greeting", mimeType: "text/plain", text: "hello" }],
      ...WITH_QUOTA,
    });
  });

  test("a body without Content-Type is read as JSON", async () => {
    const { status, body } = await rawPost(JSON.stringify(ping(2)), {}, { contentType: undefined });
    expect({ status, body }).toEqual({ status: 200, body: { jsonrpc: "2.0", id: 2, result: {} } });
  });

  test("a charset and other letter cases in Content-Type are fine", async () => {
    const { body } = await postJson(url, ping(3), { "content-type": "Application/JSON; charset=utf-8" });
    expect(body.result).toEqual({});
  });

  test("is served as 2025-03-26, and as another revision where the header names it", async () => {
    const version = async (headers: Record<string, string>): Promise<unknown> => {
      const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "who_am_i" } };
      return (await postJson(url, call, headers)).body.result?.["structuredContent"].protocolVersion;
    };
    expect(await version({})).toBe("2025-03-26");
    expect(await version({ "mcp-protocol-version": "2025-06-18" })).toBe("2025-06-18");
  });

  test("an unknown MCP-Protocol-Version header gets 400 with the supported versions", async () => {
    const { status, body } = await postJson(url, ping(4), { "mcp-protocol-version": "1999-01-01" });
    expect(status).toBe(400);
    expect(body.error).toEqual({
      code: -32602,
      message: expect.stringContaining("2025-11-25"),
      data: expectedData("unsupported_version", {
        requested: "1999-01-01",
        supported: ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
      }),
    });
  });

  test("progress is streamed to a client that asks for it and accepts a stream", async () => {
    const params = { name: "count", arguments: { steps: 3 }, _meta: { progressToken: "p" } };
    const call = { jsonrpc: "2.0", id: 5, method: "tools/call", params };
    const streamed = await postJson(url, call, { accept: BOTH });
    expect(streamed.headers.get("content-type")).toBe("text/event-stream");
    expect(streamed.messages.map(({ method, params, result }) => method ?? params ?? result)).toEqual([
      "notifications/progress",
      "notifications/progress",
      "notifications/progress",
      { content: [{ type: "text", text: "counted to 3" }], ...WITH_QUOTA },
    ]);
    const unstreamed = await postJson(url, call, { accept: "application/json" });
    expect(unstreamed.headers.get("content-type")).toBe("application/json");
    expect(text(unstreamed.body)).toBe("counted to 3");
  });

  test.each([
    ["text/event-stream;q=0", false],
    ["application/json, text/event-stream;q=0", false],
    ["application/json, text/event-stream; Q=0.000 , */*", false],
    ["text/event-stream;charset=utf-8;q=0.0", false],
    ["text/event-stream;q=0;charset=utf-8", false],
    ["text/event-streams", false],
    ["application/json;q=0, text/event-stream", true],
    ["text/event-stream;q=0.001", true],
    ["TEXT/Event-Stream ; q=1.0", true],
    ["text/event-stream;q=0, text/event-stream", true],
  ])("Accept %j takes a stream: %j", async (accept, isStreamed) => {
    const params = { name: "count", arguments: { steps: 1 }, _meta: { progressToken: "p" } };
    const answer = await postJson(url, { jsonrpc: "2.0", id: 5, method: "tools/call", params }, { accept });
    expect(answer.headers.get("content-type")).toBe(isStreamed ? "text/event-stream" : "application/json");
    expect(text(answer.body)).toBe("counted to 1");
  });

  test("a question to a client that cannot be asked is an error, not a hang", async () => {
    const { body } = await plainCall(url, "ask_name");
    expect(body.error).toEqual({
      code: -32021,
      message: expect.any(String),
      data: expectedData("missing_capability", { requiredCapabilities: { elicitation: {} } }),
    });
  });

  test("the log level that one client sets is not the level of the others", async () => {
    const logs = async (): Promise<unknown[]> => {
      const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "log_lines" } };
      const { messages } = await postJson(url, call, { accept: BOTH });
      return messages.flatMap(({ params }) => (params === undefined ? [] : [params["level"]]));
    };
    const before = await logs();
    expect(before).toEqual(["debug", "info", "warning", "error"]);
    await plain(url, "logging/setLevel", { level: "emergency" });
    expect(await logs()).toEqual(before);
  });

  test("a subscription is refused: there is no stream that could carry the news", async () => {
    const { body } = await plain(url, "resources/subscribe", { uri: "fixture://counter" });
    expect(body.error?.data).toEqual(expectedData("invalid_request"));
  });

  test("[004-R5.7] a long call does not hold up others", async () => {
    const held = plainCall(url, "hold", { label: "long" });
    for (let round = 0; round < 5; round++)
      expect(text((await plainCall(url, "echo", { text: "quick" })).body)).toBe("quick");
    await plainCall(url, "release", { label: "long" });
    expect(text((await held).body)).toBe("released long");
  });

  test("many clients that use the same id at once get their own answers", async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => postJson(url, echo(1, `client ${n}`))));
    expect(answers.map(({ body }) => text(body))).toEqual(Array.from({ length: 50 }, (_, n) => `client ${n}`));
  });

  test("the caller's W3C trace is the trace of the call", async () => {
    const trace = "0af7651916cd43dd8448eb211c80319c";
    const headers = { traceparent: `00-${trace}-b7ad6b7169203331-01` };
    const call = { jsonrpc: "2.0", id: 6, method: "tools/call", params: { name: "nobody" } };
    const answer = await postJson(url, call, headers);
    expect(answer.headers.get("x-trace-id")).toBe(trace);
    expect(answer.body.error?.data?.["trace_id"]).toBe(trace);
  });
});

describe("batches", () => {
  test("[004-R13.4] are answered in one array; notifications are silent", async () => {
    const answer = await postJson(url, [
      ping("a"),
      { jsonrpc: "2.0", method: "notifications/initialized" },
      echo(2, "in a batch"),
      { jsonrpc: "2.0", id: 3, method: "no/such" },
      { jsonrpc: "2.0", id: 4 },
      7,
    ]);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("application/json");
    const byId = (answer.body as unknown as JsonRpcAnswer[]).map(({ id, result, error }) => [
      id,
      error?.code ?? result,
    ]);
    expect(byId).toHaveLength(5);
    expect(byId).toEqual(
      expect.arrayContaining([
        ["a", {}],
        [2, { content: [{ type: "text", text: "in a batch" }], ...WITH_QUOTA }],
        [3, -32601],
        [4, -32600],
        [null, -32600],
      ]),
    );
  });

  test("a batch of notifications alone gets 202 and no body", async () => {
    const note = { jsonrpc: "2.0", method: "notifications/initialized" };
    const { status, text } = await postJson(url, [note, note]);
    expect({ status, text }).toEqual({ status: 202, text: "" });
  });

  test("an empty batch is an invalid request", async () => {
    const { status, body } = await postJson(url, []);
    expect(status).toBe(200);
    expect(body).toEqual({
      jsonrpc: "2.0",
      id: null,
      error: { code: -32600, message: expect.any(String), data: expectedData("invalid_request") },
    });
  });

  test("a batch in a revision without batches is an invalid request", async () => {
    const { body } = await postJson(url, [ping(1)], { "mcp-protocol-version": "2025-11-25" });
    expect(body.error).toMatchObject({ code: -32600, data: expectedData("invalid_request") });
  });

  test("an initialize inside a batch is refused: it would start a session that nobody can use", async () => {
    const params = { protocolVersion: "2025-03-26", capabilities: {}, clientInfo: CLIENT_INFO };
    const before = await status();
    const answer = await postJson(url, [{ jsonrpc: "2.0", id: 1, method: "initialize", params }, ping(2)]);
    const answers = answer.body as unknown as JsonRpcAnswer[];
    expect(answers.find(({ id }) => id === 1)?.error?.code).toBe(-32600);
    expect(answers.find(({ id }) => id === 2)?.result).toEqual({});
    expect((await status())["sessions"]).toBe(before["sessions"]);
    // The shared line of all plain clients is as it was.
    expect((await plainCall(url, "who_am_i")).body.result?.["structuredContent"].protocolVersion).toBe("2025-03-26");
  });
});

describe("errors of plain clients", () => {
  test("[001-http] are JSON-RPC errors with HTTP 200, and methods without a meaning here get 405 with Allow", async () => {
    const answers = [
      await post(url, "{"),
      await postJson(url, { id: 1 }),
      await plain(url, "no/such"),
      await plainCall(url, "nobody"),
      await plainCall(url, "add", { a: "x" }),
      await plainCall(url, "fail"),
    ];
    expect(answers.map(({ status, body }) => [status, body.error?.code])).toEqual([
      [200, -32700],
      [200, -32600],
      [200, -32601],
      [200, -32001],
      [200, -32602],
      [200, -32005],
    ]);
    for (const method of ["PUT", "PATCH"]) {
      const response = await fetch(url, { method });
      expect([response.status, response.headers.get("allow")]).toEqual([405, "POST, GET, DELETE, OPTIONS"]);
      expect(await response.json()).toMatchObject({ jsonrpc: "2.0", error: { data: { kind: "method_not_allowed" } } });
    }
  });

  test.each([
    ["a number", "7"],
    ["a string", '"hi"'],
    ["null", "null"],
    ["no jsonrpc", '{"id":1,"method":"ping"}'],
    ["another jsonrpc", '{"jsonrpc":"1.0","id":1,"method":"ping"}'],
    ["no method", '{"jsonrpc":"2.0","id":1}'],
    ["a method that is no string", '{"jsonrpc":"2.0","id":1,"method":7}'],
    ["an id that is an object", '{"jsonrpc":"2.0","id":{},"method":"ping"}'],
    ["an id that is null", '{"jsonrpc":"2.0","id":null,"method":"ping"}'],
    ["a fractional id", '{"jsonrpc":"2.0","id":1.5,"method":"ping"}'],
    ["params that are an array", '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}'],
  ])("[004-R13.3] a message with a required field missing or wrong is -32600: %s", async (_what, body) => {
    const answer = await post(url, body);
    expect(answer.status).toBe(200);
    expect(answer.body.error).toMatchObject({
      code: -32600,
      data: expectedData("invalid_request", { retryable: false }),
    });
  });

  test("the id of an invalid request is given back where it can be read", async () => {
    expect((await post(url, '{"jsonrpc":"1.0","id":"x","method":"ping"}')).body.id).toBe("x");
    expect((await post(url, '{"jsonrpc":"2.0","id":[],"method":"ping"}')).body.id).toBeNull();
  });

  test("a parse error says where", async () => {
    const { body } = await post(url, '{\n  "jsonrpc": "2.0",\n  nope\n}');
    expect(body.error).toEqual({
      code: -32700,
      message: expect.stringContaining("line 3, column 3"),
      data: expectedData("parse_error", { position: 24, line: 3, column: 3 }),
    });
  });

  test("an empty body is a parse error", async () => {
    expect((await post(url, "")).body.error?.code).toBe(-32700);
  });

  test("invalid UTF-8 is a parse error", async () => {
    expect((await post(url, Buffer.of(0x22, 0xc3, 0x28, 0x22))).body.error?.code).toBe(-32700);
  });

  test("a body that is no JSON by its Content-Type gets 415", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      const { status, body } = await postJson(url, ping(1), { "content-type": type });
      expect([status, body.error?.data?.["kind"]]).toEqual([415, "unsupported_media_type"]);
    }
  });

  test("a body over http.maxBodyBytes gets 413, declared or not, and the server goes on", async () => {
    const large = JSON.stringify(echo(1, "x".repeat(20_000)));
    const declared = await rawPost(large, {});
    expect([declared.status, declared.body.error?.data]).toEqual([413, expectedData("too_large", { limit: 10_000 })]);
    const streamed = await rawPost(large, {}, { chunked: true });
    expect(streamed.status).toBe(413);
    expect(text((await plainCall(url, "echo", { text: "still here" })).body)).toBe("still here");
  });

  test("a notification and a response get 202 and no body", async () => {
    for (const message of [
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", id: 1, result: {} },
    ]) {
      const { status, text } = await postJson(url, message);
      expect({ status, text }).toEqual({ status: 202, text: "" });
    }
  });
});

describe("other methods and routes", () => {
  test("[000-R5.2] GET /mcp answers with the server's status", async () => {
    const response = await fetch(url);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toEqual({
      status: "ok",
      server: { name: "owlclaw", title: "OwlClaw", version: expect.any(String) },
      protocolVersions: ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
      checks: expect.any(Object),
      uptimeSeconds: expect.any(Number),
      sessions: expect.any(Number),
      tools: expect.any(Number),
      auth: false,
    });
  });

  test("[004-R3.9] GET /health says that the server is up", async () => {
    const response = await fetch(`${server.origin}/health`);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ status: "ok" });
  });

  test("HEAD is one of the methods without a meaning here, and has no body", async () => {
    const response = await fetch(url, { method: "HEAD" });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "POST, GET, DELETE, OPTIONS"]);
    expect(await response.text()).toBe("");
  });

  test("OPTIONS says which methods there are", async () => {
    const response = await fetch(url, { method: "OPTIONS" });
    expect(response.status).toBe(204);
    expect(response.headers.get("allow")).toBe("POST, GET, DELETE, OPTIONS");
    const sse = await fetch(`${server.origin}/mcp/sse`, { method: "OPTIONS" });
    expect(sse.headers.get("allow")).toBe("GET, OPTIONS");
  });

  test("an event stream without a session is refused in words, or answered with the status", async () => {
    const response = await fetch(url, { headers: { accept: "text/event-stream" } });
    expect([200, 405]).toContain(response.status);
    expect(response.headers.get("content-type")).toBe("application/json");
  });

  test("a path that does not exist gets 404 with the unified error", async () => {
    const response = await fetch(`${server.origin}/nothing`);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { data: expectedData("route_not_found") } });
  });
});

describe("versions in initialize", () => {
  const initialize = (protocolVersion: unknown): Promise<JsonRpcAnswer> =>
    postJson(
      url,
      {
        jsonrpc: "2.0",
        id: 1,
        method: "initialize",
        params: { protocolVersion, capabilities: {}, clientInfo: CLIENT_INFO },
      },
      { accept: BOTH },
    ).then(({ body }) => body);

  test("[003-FR-001c] what we speak is accepted as it is; what we cannot is refused with the list and a trace id", async () => {
    for (const version of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]) {
      expect((await initialize(version)).result?.["protocolVersion"]).toBe(version);
    }
    for (const version of ["1.0", "", "2024-10-07", "0000-00-00", "latest", 7, null, {}]) {
      const { id, error, result } = await initialize(version);
      expect(result).toBeUndefined();
      expect(id).toBe(1);
      expect(error).toEqual({
        code: -32602,
        message: expect.stringContaining("2025-11-25"),
        data: expectedData("unsupported_version", {
          supported: ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
        }),
      });
    }
  });

  test("no version at all is refused with the list and a trace id", async () => {
    const { error } = await initialize(undefined);
    expect(error?.data).toEqual(
      expectedData("unsupported_version", { supported: expect.arrayContaining(["2025-11-25"]) }),
    );
  });

  test("an unknown newer version is negotiated down to the newest with a handshake", async () => {
    for (const version of ["2026-01-01", "2026-07-28", "2099-12-31"]) {
      expect((await initialize(version)).result?.["protocolVersion"]).toBe("2025-11-25");
    }
  });

  test("a refused handshake leaves no session behind", async () => {
    const before = (await status())["sessions"];
    await initialize("1.0");
    expect((await status())["sessions"]).toBe(before);
  });
});

async function status(): Promise<Record<string, unknown>> {
  return (await (await fetch(url)).json()) as Record<string, unknown>;
}

interface RawAnswer {
  readonly status: number | undefined;
  readonly headers: Record<string, unknown>;
  readonly body: JsonRpcAnswer;
}

/** `fetch` adds an Accept and a Content-Type of its own; here only what is said is sent. */
function rawPost(
  body: string,
  headers: Record<string, string>,
  { contentType = "application/json", chunked = false }: { contentType?: string | undefined; chunked?: boolean } = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const length = chunked ? { "transfer-encoding": "chunked" } : { "content-length": String(Buffer.byteLength(body)) };
    const type = contentType === undefined ? {} : { "content-type": contentType };
    const request = httpRequest(url, { method: "POST", headers: { ...type, ...length, ...headers } }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode, headers: response.headers, body: JSON.parse(text) as JsonRpcAnswer }),
      );
    });
    request.on("error", reject);
    request.end(body);
  });
}
