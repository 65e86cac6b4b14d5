import { writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, scratchFile, startHttp, until } from "./harness.ts";
import { BOTH, closeStreams, HttpSession, modern, plainCall, postJson } from "./http-client.ts";
import { expectedData, text, type Unchecked } from "./wire-messages.ts";

let server: HttpServer;
let url: string;

beforeAll(async () => {
  server = await startHttp({ config: { http: { keepAliveSeconds: 0.1 } } });
  ({ url } = server);
});

afterEach(closeStreams);
afterAll(() => server.stop());

const callMessage = (id: number, name: string, args: object = {}, meta: object = {}): object => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args, _meta: meta },
});

async function observed(label: string): Promise<Record<string, boolean>> {
  return (await plainCall(url, "observe", { label })).body.result?.["structuredContent"] as Record<string, boolean>;
}

async function openSessions(address = url): Promise<number> {
  return ((await (await fetch(address)).json()) as { sessions: number }).sessions;
}

describe("a session", () => {
  test("has an id that cannot be guessed, and keeps the negotiated revision", async () => {
    const session = await HttpSession.open(url, { version: "2025-06-18" });
    expect(session.id).toMatch(/^[\w-]{22,}$/);
    const { body, headers } = await session.call("who_am_i");
    expect(body.result?.["structuredContent"].protocolVersion).toBe("2025-06-18");
    expect(headers.get("mcp-session-id")).toBe(session.id);
  });

  test("ends with DELETE; its id is unknown from then on", async () => {
    const session = await HttpSession.open(url);
    expect((await session.request("ping")).status).toBe(200);
    expect((await session.delete()).status).toBe(204);
    const { status, body } = await session.request("ping");
    expect(status).toBe(404);
    expect(body.error?.data).toEqual(expectedData("session_not_found"));
    expect((await session.delete()).status).toBe(404);
    expect((await session.listen()).response.status).toBe(404);
  });

  test("that was never issued is 404, and DELETE without one is 400", async () => {
    const { status, body } = await postJson(
      url,
      { jsonrpc: "2.0", id: 1, method: "ping" },
      { accept: BOTH, "mcp-session-id": "made-up" },
    );
    expect([status, body.error?.data?.["kind"]]).toEqual([404, "session_not_found"]);
    expect((await fetch(url, { method: "DELETE" })).status).toBe(400);
  });

  test("its DELETE cancels what it is doing", async () => {
    const session = await HttpSession.open(url);
    const pending = session.call("hold", { label: "deleted" }).catch(() => undefined);
    await until(
      () => observed("deleted"),
      ({ started }) => started === true,
    );
    await session.delete();
    expect(
      await until(
        () => observed("deleted"),
        ({ aborted }) => aborted === true,
      ),
    ).toMatchObject({ finished: false });
    await pending;
  });

  test("refuses a request that names a version which does not exist", async () => {
    const session = await HttpSession.open(url);
    const message = { jsonrpc: "2.0", id: 1, method: "ping" };
    const { status, body } = await session.send(message, { "mcp-protocol-version": "2020-01-01" });
    expect([status, body.error?.data?.["kind"]]).toEqual([400, "unsupported_version"]);
  });

  test("in 2025-03-26 takes batches, and in other revisions does not", async () => {
    const batch = [
      { jsonrpc: "2.0", id: 1, method: "ping" },
      { jsonrpc: "2.0", id: 2, method: "no/such" },
    ];
    const old = await HttpSession.open(url, { version: "2025-03-26" });
    expect((await old.send(batch)).body).toEqual([
      { jsonrpc: "2.0", id: 1, result: {} },
      { jsonrpc: "2.0", id: 2, error: expect.objectContaining({ code: -32601 }) },
    ]);
    const current = await HttpSession.open(url, { version: "2025-11-25" });
    expect((await current.send(batch)).body.error?.code).toBe(-32600);
  });

  test("serves several requests with the same id one after the other and at once", async () => {
    const session = await HttpSession.open(url);
    const answers = await Promise.all(
      ["a", "b", "c"].map((said) => session.send(callMessage(1, "echo", { text: said }))),
    );
    expect(answers.map(({ body }) => text(body))).toEqual(["a", "b", "c"]);
  });
});

describe("the stream of a session", () => {
  test("carries list changes and updates of watched resources, and no others", async () => {
    const session = await HttpSession.open(url);
    const stream = await session.listen();
    expect(stream.response.headers.get("content-type")).toBe("text/event-stream");
    await session.call("bump");
    expect((await session.request("resources/subscribe", { uri: "fixture://counter" })).body.result).toEqual({});
    await session.call("bump");
    await session.call("announce", { list: "tools" });
    await session.call("announce", { list: "resources" });
    await session.call("announce", { list: "prompts" });
    await stream.message(({ method }) => method === "notifications/prompts/list_changed");
    expect(stream.messages.map(({ method, params }) => [method, params?.["uri"]])).toEqual([
      ["notifications/resources/updated", "fixture://counter"],
      ["notifications/tools/list_changed", undefined],
      ["notifications/resources/list_changed", undefined],
      ["notifications/prompts/list_changed", undefined],
    ]);
    await session.request("resources/unsubscribe", { uri: "fixture://counter" });
    await session.call("bump");
    await session.call("announce", { list: "tools" });
    await until(
      () => stream.messages.length,
      (count) => count >= 5,
    );
    expect(stream.messages[4]?.method).toBe("notifications/tools/list_changed");
  });

  test("is kept alive with comments", async () => {
    const stream = await (await HttpSession.open(url)).listen();
    expect(await stream.comment()).toBe(": keep-alive");
  });

  test("is not opened for a client that names event streams with the weight zero", async () => {
    const session = await HttpSession.open(url);
    const headers = { accept: "text/event-stream;q=0", "mcp-session-id": session.id };
    const response = await fetch(url, { headers });
    expect([response.status, await response.json()]).toMatchObject([200, { status: "ok" }]);
  });

  test("is one at a time: a second one is refused with 409", async () => {
    const session = await HttpSession.open(url);
    const first = await session.listen();
    const second = await session.listen();
    expect([first.response.status, second.response.status]).toEqual([200, 409]);
    first.close();
    await until(
      async () => (await session.listen()).response.status,
      (status) => status === 200,
    );
  });

  test("ends with the session", async () => {
    const session = await HttpSession.open(url);
    const stream = await session.listen();
    await session.delete();
    await expect(stream.ended()).resolves.toBeUndefined();
  });
});

describe("a stream that was lost, in 2025-11-25", () => {
  test("is resumed after the last event seen: what was missed comes, nothing comes twice", async () => {
    const session = await HttpSession.open(url);
    const stream = await session.open(
      callMessage(7, "hold", { label: "resumed", progress: true }, { progressToken: 1 }),
    );
    const primer = await stream.event(({ id, data }) => id !== undefined && data === "");
    const progress = await stream.event(({ data }) => data.includes("notifications/progress"));
    expect(progress.id).not.toBe(primer.id);
    stream.close();
    // The server has noticed by the time it has answered something else a few times.
    for (let round = 0; round < 5; round++) await session.request("ping");
    await plainCall(url, "release", { label: "resumed" });

    const rest = await session.listen(progress.id);
    expect(text(await rest.message(({ id }) => id === 7))).toBe("released resumed");
    await rest.ended();
    expect(rest.messages).toHaveLength(1);

    const again = await session.listen(primer.id);
    await again.ended();
    expect(again.messages.map(({ id, method }) => method ?? id)).toEqual(["notifications/progress", 7]);
    expect(await observed("resumed")).toEqual({ started: true, aborted: false, finished: true });
  });

  test("what happened on the session's own stream while nobody listened comes when it is resumed", async () => {
    const session = await HttpSession.open(url);
    const stream = await session.listen();
    await session.call("announce", { list: "tools" });
    const seen = await stream.event(({ data }) => data.includes("tools/list_changed"));
    stream.close();
    await session.call("announce", { list: "prompts" });
    const resumed = await until(
      () => session.listen(seen.id),
      ({ response }) => response.status === 200,
    );
    await resumed.message(({ method }) => method === "notifications/prompts/list_changed");
    expect(resumed.messages.map(({ method }) => method)).toEqual(["notifications/prompts/list_changed"]);
  });

  test("a handler may send the client away to come back for the answer", async () => {
    const session = await HttpSession.open(url);
    const stream = await session.open(callMessage(8, "come_back", { label: "polling" }));
    await stream.ended();
    const primer = stream.events[0];
    expect(primer).toMatchObject({ id: expect.any(String), data: "" });
    expect(stream.text).toMatch(/^retry: \d+$/m);
    const rest = await session.listen(primer?.id);
    await plainCall(url, "release", { label: "polling" });
    expect(text(await rest.message(({ id }) => id === 8))).toBe("came back for polling");
  });

  test("an event id of another session opens nothing", async () => {
    const session = await HttpSession.open(url);
    const stream = await session.open(callMessage(9, "count", { steps: 2 }, { progressToken: 1 }));
    await stream.ended();
    const other = await HttpSession.open(url);
    const stolen = await other.listen(stream.events[0]?.id);
    expect(stolen.response.status).toBe(400);
    for (const id of ["nonsense", "", "../../x.1", "a".repeat(10_000)]) {
      expect((await other.listen(id)).response.status).not.toBe(200);
    }
  });
});

describe("a client that goes away", () => {
  test("cancels its call when it hangs up before anything was streamed", async () => {
    const session = await HttpSession.open(url);
    const hangUp = new AbortController();
    const pending = fetch(url, {
      method: "POST",
      headers: { ...session.headers, "content-type": "application/json" },
      body: JSON.stringify(callMessage(1, "hold", { label: "hung up" })),
      signal: hangUp.signal,
    }).catch(() => undefined);
    await until(
      () => observed("hung up"),
      ({ started }) => started === true,
    );
    hangUp.abort();
    await pending;
    expect(
      await until(
        () => observed("hung up"),
        ({ aborted }) => aborted === true,
      ),
    ).toMatchObject({ finished: false });
  });

  test("cancels its call without a session, too", async () => {
    const hangUp = new AbortController();
    const pending = fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(callMessage(1, "hold", { label: "plain gone" })),
      signal: hangUp.signal,
    }).catch(() => undefined);
    await until(
      () => observed("plain gone"),
      ({ started }) => started === true,
    );
    hangUp.abort();
    await pending;
    expect(
      await until(
        () => observed("plain gone"),
        ({ aborted }) => aborted === true,
      ),
    ).toMatchObject({ finished: false });
  });

  // A call without a progress token is answered without the SDK, one with it is not: both must listen.
  test.each([{}, { progressToken: "t" }])(
    "cancels its call with notifications/cancelled, and gets no answer to it (%j)",
    async (meta) => {
      const label = `cancelled ${JSON.stringify(meta)}`;
      const session = await HttpSession.open(url);
      const pending = session.send(callMessage(77, "hold", { label }, meta));
      await until(
        () => observed(label),
        ({ started }) => started === true,
      );
      const params = { requestId: 77, reason: "changed my mind" };
      const { status } = await session.send({ jsonrpc: "2.0", method: "notifications/cancelled", params });
      expect(status).toBe(202);
      await until(
        () => observed(label),
        ({ aborted }) => aborted === true,
      );
      expect((await pending).text).not.toContain('"result"');
    },
  );

  test("cannot cancel the call of another session by its id", async () => {
    const [victim, attacker] = [await HttpSession.open(url), await HttpSession.open(url)];
    const pending = victim.send(callMessage(5, "hold", { label: "victim" }));
    await until(
      () => observed("victim"),
      ({ started }) => started === true,
    );
    await attacker.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } });
    await postJson(url, { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } });
    await plainCall(url, "release", { label: "victim" });
    expect(text((await pending).body)).toBe("released victim");
  });
});

describe("limits of sessions", () => {
  test("one that is not used ends by itself; one with an open stream does not", async () => {
    const hasty = await startHttp({ config: { http: { sessionIdleSeconds: 5 } } });
    const idle = await HttpSession.open(hasty.url);
    const listening = await HttpSession.open(hasty.url);
    await listening.listen();
    await until(
      () => openSessions(hasty.url),
      (sessions) => sessions === 1,
    );
    expect((await idle.request("ping")).status).toBe(404);
    expect((await listening.request("ping")).status).toBe(200);
    closeStreams();
    await hasty.stop();
  });

  test("over http.maxSessions the one unused for longest makes room, busy ones never; then 503", async () => {
    const small = await startHttp({ config: { http: { maxSessions: 2 } } });
    const first = await HttpSession.open(small.url);
    const second = await HttpSession.open(small.url);
    await first.request("ping");
    const third = await HttpSession.open(small.url);
    expect((await second.request("ping")).status).toBe(404);
    expect((await first.request("ping")).status).toBe(200);
    await Promise.all([first.listen(), third.listen()]);
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } };
    const refused = await postJson(
      small.url,
      { jsonrpc: "2.0", id: 1, method: "initialize", params },
      { accept: BOTH },
    );
    expect(refused.status).toBe(503);
    expect(refused.body.error?.data).toEqual(expectedData("overloaded", { retryable: true, limit: 2 }));
    closeStreams();
    await small.stop();
  });
});

describe("shutdown over HTTP", () => {
  test("[000-R7.2] [000-R7.3] running calls are finished and answered, new ones are refused, streams end", async () => {
    const stopping = await startHttp();
    const session = await HttpSession.open(stopping.url);
    const stream = await session.listen();
    const releaseFile = scratchFile();
    const pending = session.call("hold", { label: "last", releaseFile });
    const observe = (): Promise<{ body: { result?: Record<string, Unchecked> } }> =>
      plainCall(stopping.url, "observe", { label: "last" });
    await until(observe, ({ body }) => body.result?.["structuredContent"].started === true);
    stopping.child.kill("SIGTERM");
    await stopping.logged("stopping");
    await expect(
      plainCall(stopping.url, "echo", { text: "late" }).then(
        ({ status }) => status,
        () => "refused",
      ),
    ).resolves.toSatisfy((outcome) => outcome === 503 || outcome === "refused");
    writeFileSync(releaseFile, "");
    expect(text((await pending).body)).toBe("released last");
    await stream.ended();
    expect(await stopping.exit()).toEqual({ code: 0, signal: null });
  });

  test("a call that does not end is cancelled after shutdown.deadlineSeconds", async () => {
    const stopping = await startHttp({ config: { shutdown: { deadlineSeconds: 0.3 } } });
    const pending = plainCall(stopping.url, "hold", { label: "endless" }).catch(() => undefined);
    const observe = (): Promise<{ body: { result?: Record<string, Unchecked> } }> =>
      plainCall(stopping.url, "observe", { label: "endless" });
    await until(observe, ({ body }) => body.result?.["structuredContent"].started === true);
    await stopping.stop();
    await pending;
    expect(stopping.logs.map(({ message }) => message)).toContain(
      "shutdown deadline passed, cancelling running requests",
    );
  });
});

test("a request of the newest revision is cancelled by closing its connection", async () => {
  const hangUp = new AbortController();
  const reply = modern(url, "tools/call", { name: "echo", arguments: { text: "warm" } });
  expect(text((await reply).body)).toBe("warm");
  const { default: http } = await import("node:http");
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: {
      name: "hold",
      arguments: { label: "modern gone" },
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
      },
    },
  });
  const headers = {
    accept: BOTH,
    "content-type": "application/json",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "hold",
  };
  const request = http.request(url, { method: "POST", headers, signal: hangUp.signal });
  request.on("error", () => undefined);
  request.end(body);
  await until(
    () => observed("modern gone"),
    ({ started }) => started === true,
  );
  hangUp.abort();
  await until(
    () => observed("modern gone"),
    ({ aborted }) => aborted === true,
  );
});
