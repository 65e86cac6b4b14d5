import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { DEFAULT_CONFIG } from "../../src/config/schema.ts";
import { type HttpServer, startHttp, until } from "./harness.ts";
import { closeStreams, plainCall, SseLine } from "./http-client.ts";
import { expectedData, text, WITH_QUOTA } from "./wire-messages.ts";

let server: HttpServer;

beforeAll(async () => {
  server = await startHttp({ config: { http: { keepAliveSeconds: 0.1 } } });
});

afterEach(async () => {
  closeStreams();
  await until(openLines, (count) => count === 0);
});
afterAll(() => server.stop());

async function openLines(): Promise<number> {
  return ((await (await fetch(server.url)).json()) as { sessions: number }).sessions;
}

async function observed(label: string): Promise<Record<string, boolean>> {
  return (await plainCall(server.url, "observe", { label })).body.result?.["structuredContent"] as Record<
    string,
    boolean
  >;
}

describe("GET /mcp/sse with POST /mcp/messages", () => {
  test("[003-FR-001b] [003-FR-001e] [004-R3.4] the stream names where to post, and carries every answer", async () => {
    const line = await SseLine.open(server.origin);
    expect(line.stream.response.headers.get("content-type")).toBe("text/event-stream");
    expect(line.endpoint).toMatch(/\/mcp\/messages\?sessionId=[\w-]{22,}$/);
    expect((await line.initialize()).result).toMatchObject({
      protocolVersion: "2024-11-05",
      serverInfo: { name: "owlclaw" },
    });
    const posted = await line.post({
      jsonrpc: "2.0",
      id: "e",
      method: "tools/call",
      params: { name: "echo", arguments: { text: "hi" } },
    });
    expect(posted.status).toBe(202);
    expect(await line.stream.message(({ id }) => id === "e")).toEqual({
      jsonrpc: "2.0",
      id: "e",
      result: { content: [{ type: "text", text: "hi" }], ...WITH_QUOTA },
    });
  });

  test("[004-R3.5] progress and resource changes are pushed", async () => {
    const line = await SseLine.open(server.origin);
    await line.initialize();
    const params = { name: "count", arguments: { steps: 3 }, _meta: { progressToken: "steps" } };
    expect(text(await line.request("tools/call", params))).toBe("counted to 3");
    const progress = line.stream.messages.filter(({ method }) => method === "notifications/progress");
    expect(progress.map(({ params }) => params)).toEqual(
      [1, 2, 3].map((step) => ({ progressToken: "steps", progress: step, total: 3, message: `step ${step}` })),
    );

    await line.request("resources/subscribe", { uri: "fixture://counter" });
    await plainCall(server.url, "bump");
    const updated = await line.stream.message(({ method }) => method === "notifications/resources/updated");
    expect(updated.params).toEqual({ uri: "fixture://counter" });
    await plainCall(server.url, "announce", { list: "resources" });
    await line.stream.message(({ method }) => method === "notifications/resources/list_changed");
  });

  test("[004-R5.8] a call that runs long without a word of its own is reported, after 30 s by default", async () => {
    expect(DEFAULT_CONFIG.tools.progressAfterSeconds).toBe(30);
    const eager = await startHttp({ config: { tools: { progressAfterSeconds: 1 } } });
    const line = await SseLine.open(eager.origin);
    await line.initialize();
    const params = { name: "hold", arguments: { label: "quiet" }, _meta: { progressToken: "t" } };
    const answer = line.request("tools/call", params);
    const progress = await line.stream.message(({ method }) => method === "notifications/progress");
    expect(progress.params).toEqual({
      progressToken: "t",
      progress: expect.any(Number),
      message: expect.stringMatching(/has been running for \d s$/),
    });
    await plainCall(eager.url, "release", { label: "quiet" });
    expect(text(await answer)).toBe("released quiet");
    line.stream.close();
    await eager.stop();
  });

  test("[004-R3.8] a closed stream frees what was held for it: its session, its watch, its running call", async () => {
    const line = await SseLine.open(server.origin);
    await line.initialize();
    await line.request("resources/subscribe", { uri: "fixture://counter" });
    await line.post({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "hold", arguments: { label: "sse" } },
    });
    await until(
      () => observed("sse"),
      ({ started }) => started === true,
    );
    expect(await openLines()).toBe(1);
    line.stream.close();
    await until(
      () => observed("sse"),
      ({ aborted }) => aborted === true,
    );
    await until(openLines, (count) => count === 0);
    const late = await line.post({ jsonrpc: "2.0", id: 2, method: "ping" });
    expect(late.status).toBe(404);
  });

  test("an unknown or missing sessionId is 404", async () => {
    for (const query of ["", "?sessionId=", "?sessionId=made-up"]) {
      const response = await fetch(`${server.origin}/mcp/messages${query}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ error: { data: expectedData("session_not_found") } });
    }
  });

  test("what is no JSON-RPC is refused in the answer to the POST", async () => {
    const line = await SseLine.open(server.origin);
    const response = await fetch(line.endpoint, {
      method: "POST",
      body: "{",
      headers: { "content-type": "application/json" },
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: -32700 } });
  });

  test("a form is refused with 415, so that a page of another site cannot post one", async () => {
    const line = await SseLine.open(server.origin);
    for (const type of ["text/plain", "application/x-www-form-urlencoded"]) {
      const response = await fetch(line.endpoint, {
        method: "POST",
        body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
        headers: { "content-type": type },
      });
      expect(response.status).toBe(415);
    }
  });

  test("cancellation reaches the handler", async () => {
    const line = await SseLine.open(server.origin);
    await line.initialize();
    await line.post({
      jsonrpc: "2.0",
      id: 9,
      method: "tools/call",
      params: { name: "hold", arguments: { label: "sse-c" } },
    });
    await until(
      () => observed("sse-c"),
      ({ started }) => started === true,
    );
    await line.post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 9 } });
    await until(
      () => observed("sse-c"),
      ({ aborted }) => aborted === true,
    );
    expect((await line.request("ping")).result).toEqual({});
    expect(line.stream.messages.some(({ id }) => id === 9)).toBe(false);
  });

  test("is kept alive with comments", async () => {
    const line = await SseLine.open(server.origin);
    expect(await line.stream.comment()).toBe(": keep-alive");
  });

  test("a batch is answered in one event in 2025-03-26, and refused in 2024-11-05", async () => {
    const batch = [
      { jsonrpc: "2.0", id: "x", method: "ping" },
      { jsonrpc: "2.0", id: "y", method: "ping" },
    ];
    const line = await SseLine.open(server.origin);
    await line.initialize("2025-03-26");
    await line.post(batch);
    const { data } = await line.stream.event(({ data }) => data.startsWith("["));
    expect(JSON.parse(data)).toHaveLength(2);
    const old = await SseLine.open(server.origin);
    await old.initialize("2024-11-05");
    expect((await old.post(batch)).status).toBe(400);
  });

  test("over http.maxSessions new streams are refused with 503", async () => {
    const small = await startHttp({ config: { http: { maxSessions: 1 } } });
    await SseLine.open(small.origin);
    const second = await fetch(`${small.origin}/mcp/sse`);
    expect(second.status).toBe(503);
    closeStreams();
    await small.stop();
  });

  test("the server's end closes the stream", async () => {
    const stopping = await startHttp();
    const line = await SseLine.open(stopping.origin);
    await stopping.stop();
    await expect(line.stream.ended()).resolves.toBeUndefined();
  });
});
