import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, startHttp, until } from "./harness.ts";
import { BOTH, closeStreams, EventReader, modern, plainCall, postJson } from "./http-client.ts";
import { StdioLine } from "./stdio-line.ts";
import {
  envelope,
  expectedData,
  type JsonRpcAnswer,
  MODERN,
  modernHeaders,
  TASKS_EXTENSION,
  text,
} from "./wire-messages.ts";

let server: HttpServer;
let url: string;

beforeAll(async () => {
  server = await startHttp();
  ({ url } = server);
});

afterEach(closeStreams);
afterAll(() => server.stop());

const TASKS = { extensions: { [TASKS_EXTENSION]: {} } };

type Ask = (
  method: string,
  params?: Record<string, unknown>,
  capabilities?: Record<string, unknown>,
) => Promise<JsonRpcAnswer>;

const overHttp: Ask = async (method, params = {}, capabilities = {}) =>
  (await modern(url, method, params, { capabilities })).body;

describe("requests that name their revision", () => {
  test("server/discover says which revisions there are", async () => {
    const { result } = await overHttp("server/discover");
    expect(result).toMatchObject({
      supportedVersions: expect.arrayContaining([MODERN]),
      capabilities: { tools: {}, extensions: { [TASKS_EXTENSION]: {} } },
      _meta: { "io.modelcontextprotocol/serverInfo": { name: "owlclaw" } },
    });
  });

  test("results say that they are complete and who made them", async () => {
    const { result } = await overHttp("tools/call", { name: "echo", arguments: { text: "hi" } });
    expect(result).toMatchObject({
      resultType: "complete",
      _meta: { "io.modelcontextprotocol/serverInfo": { name: "owlclaw" } },
    });
  });

  test("lists carry how long they may be cached, and are in the same order each time", async () => {
    const first = await overHttp("tools/list");
    expect(first.result).toMatchObject({ ttlMs: expect.any(Number), cacheScope: expect.any(String) });
    expect((await overHttp("tools/list")).result?.["tools"]).toEqual(first.result?.["tools"]);
  });

  test("a revision that we do not speak is refused with the list", async () => {
    for (const version of ["2026-12-01", "2099-01-01"]) {
      const params = envelope({}, {}, { "io.modelcontextprotocol/protocolVersion": version });
      const answer = await postJson(
        url,
        { jsonrpc: "2.0", id: 1, method: "tools/list", params },
        { accept: BOTH, "mcp-method": "tools/list", "mcp-protocol-version": version },
      );
      expect(answer.status).toBe(400);
      expect(answer.body.error).toMatchObject({
        code: -32022,
        data: expectedData("unsupported_version", { supported: expect.arrayContaining([MODERN]), requested: version }),
      });
    }
  });

  test("headers that disagree with the body are refused", async () => {
    const params = envelope({ name: "echo", arguments: { text: "hi" } });
    const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
    for (const wrong of [
      { "mcp-method": "tools/list" },
      { "mcp-name": "fail" },
      { "mcp-protocol-version": "2025-11-25" },
    ]) {
      const headers = { accept: BOTH, ...modernHeaders("tools/call", { name: "echo" }), ...wrong };
      const { status, body } = await postJson(url, message, headers);
      expect([status, body.error?.code, body.error?.data?.["kind"]]).toEqual([400, -32020, "header_mismatch"]);
    }
  });

  test("log messages come for the level that the request names, and none without", async () => {
    const levels = async (meta: Record<string, unknown>): Promise<unknown[]> => {
      const { messages } = await modern(url, "tools/call", { name: "log_lines", arguments: {} }, { meta });
      return messages.flatMap(({ method, params }) => (method === "notifications/message" ? [params?.["level"]] : []));
    };
    expect(await levels({ "io.modelcontextprotocol/logLevel": "warning" })).toEqual(["warning", "error"]);
    expect(await levels({})).toEqual([]);
  });

  test("progress comes on the stream of the request, before the answer, in order", async () => {
    const { messages, headers } = await modern(
      url,
      "tools/call",
      { name: "count", arguments: { steps: 3 } },
      { meta: { progressToken: "t" } },
    );
    expect(headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(
      messages.map(({ method, params, result }) =>
        method === undefined ? result?.["resultType"] : params?.["progress"],
      ),
    ).toEqual([1, 2, 3, "complete"]);
  });

  test("subscriptions/listen carries what was asked for and nothing else", async () => {
    const params = envelope({
      notifications: { toolsListChanged: true, resourceSubscriptions: ["fixture://counter"] },
    });
    const stream = await EventReader.open(url, {
      method: "POST",
      headers: { accept: BOTH, "content-type": "application/json", ...modernHeaders("subscriptions/listen") },
      body: JSON.stringify({ jsonrpc: "2.0", id: "sub", method: "subscriptions/listen", params }),
    });
    await stream.message(({ method }) => method === "notifications/subscriptions/acknowledged");
    await plainCall(url, "announce", { list: "prompts" });
    await plainCall(url, "bump");
    await plainCall(url, "announce", { list: "tools" });
    await stream.message(({ method }) => method === "notifications/tools/list_changed");
    expect(stream.messages.slice(1).map(({ method, params }) => [method, params?.["uri"]])).toEqual([
      ["notifications/resources/updated", "fixture://counter"],
      ["notifications/tools/list_changed", undefined],
    ]);
    for (const { params } of stream.messages) {
      expect(params?.["_meta"]).toMatchObject({ "io.modelcontextprotocol/subscriptionId": "sub" });
    }
  });
});

/** Both doors, since the state of questions and tasks is the server's and not the connection's. */
describe.each(["http", "stdio"])("over %s", (transport) => {
  let line: StdioLine | undefined;
  let ask: Ask = overHttp;

  beforeAll(() => {
    if (transport === "http") return;
    const stdio = new StdioLine();
    line = stdio;
    ask = (method, params, capabilities) => stdio.modernRequest(method, params, capabilities);
  });

  afterAll(() => line?.finish());

  const call = (
    name: string,
    args: object = {},
    more: object = {},
    capabilities: Record<string, unknown> = {},
  ): Promise<JsonRpcAnswer> => ask("tools/call", { name, arguments: args, ...more }, capabilities);

  describe("questions", () => {
    const ASKABLE = { elicitation: {}, sampling: {} };

    test("are the result, and the call goes on when it is sent again with the answers", async () => {
      const { result } = await call("ask_name", {}, {}, ASKABLE);
      expect(result).toMatchObject({
        resultType: "input_required",
        inputRequests: {
          question_1: { method: "elicitation/create", params: { mode: "form", message: "What is your name?" } },
        },
        requestState: expect.any(String),
      });
      const { requestState } = result ?? {};
      const inputResponses = { question_1: { action: "accept", content: { name: "Grace" } } };
      const answered = await call("ask_name", {}, { inputResponses, requestState }, ASKABLE);
      expect(text(answered)).toBe("hello Grace");
    });

    test("that are asked side by side go out together", async () => {
      const { result } = await call("ask_both", {}, {}, ASKABLE);
      expect(Object.keys(result?.["inputRequests"]).toSorted()).toEqual(["model", "name"]);
    });

    test("may be declined", async () => {
      const { result } = await call("ask_name", {}, {}, ASKABLE);
      const inputResponses = { question_1: { action: "decline" } };
      const declined = await call("ask_name", {}, { inputResponses, requestState: result?.["requestState"] }, ASKABLE);
      expect(text(declined)).toBe("no name: decline");
    });

    test("with a state that was changed, or that belongs to another call, are refused", async () => {
      const { result } = await call("ask_name", {}, {}, ASKABLE);
      const inputResponses = { question_1: { action: "accept", content: { name: "Eve" } } };
      const state = String(result?.["requestState"]);
      const changed = `${state.slice(0, -4)}${state.endsWith("AAAA") ? "BBBB" : "AAAA"}`;
      const tampered = await call("ask_name", {}, { inputResponses, requestState: changed }, ASKABLE);
      expect(tampered.error).toMatchObject({ code: -32602, data: expectedData("invalid_params") });
      const other = await call("ask_model", { prompt: "x" }, { inputResponses, requestState: state }, ASKABLE);
      expect(other.error).toMatchObject({ code: -32602 });
    });

    test("to a client that cannot answer them are an error that names what is missing", async () => {
      expect((await call("ask_name")).error).toMatchObject({
        code: -32021,
        data: expectedData("missing_capability", { requiredCapabilities: { elicitation: {} } }),
      });
    });
  });

  describe("tasks", () => {
    test("a call answers with a task at once; its result is fetched", async () => {
      const label = `task-${transport}`;
      const started = await call("job", { label }, {}, TASKS);
      expect(started.result).toMatchObject({
        resultType: "task",
        taskId: expect.stringMatching(/^[\w-]{22,}$/),
        status: "working",
        ttlMs: expect.any(Number),
        pollIntervalMs: expect.any(Number),
        createdAt: expect.stringMatching(/^\d{4}-/),
      });
      const { taskId } = started.result ?? {};
      expect((await ask("tasks/get", { taskId }, TASKS)).result).toMatchObject({ taskId, status: "working" });
      await call("release", { label });
      const done = await until(
        async () => (await ask("tasks/get", { taskId }, TASKS)).result,
        (result) => result?.["status"] !== "working",
      );
      expect(done).toMatchObject({
        status: "completed",
        result: { content: [{ type: "text", text: `job ${label} done` }] },
      });
    });

    test("a client without the extension waits for the result", async () => {
      const label = `no-task-${transport}`;
      const pending = call("job", { label });
      await until(
        async () => (await call("observe", { label })).result?.["structuredContent"],
        ({ started }) => started === true,
      );
      await call("release", { label });
      expect(text(await pending)).toBe(`job ${label} done`);
    });

    test("a task may be cancelled: the handler sees it", async () => {
      const label = `cancel-${transport}`;
      const { result } = await call("job", { label }, {}, TASKS);
      await ask("tasks/cancel", { taskId: result?.["taskId"] }, TASKS);
      expect((await ask("tasks/get", { taskId: result?.["taskId"] }, TASKS)).result).toMatchObject({
        status: "cancelled",
      });
      const seen = (await call("observe", { label })).result;
      expect(seen?.["structuredContent"]).toMatchObject({ aborted: true });
    });

    test("a task asks through tasks/get and is answered with tasks/update", async () => {
      const capabilities = { ...TASKS, elicitation: {} };
      const { result } = await call("only_as_task", {}, {}, capabilities);
      const taskId = result?.["taskId"];
      const asking = await until(
        async () => (await ask("tasks/get", { taskId }, capabilities)).result,
        (task) => task?.["status"] === "input_required",
      );
      expect(asking?.["inputRequests"]).toMatchObject({ go: { method: "elicitation/create" } });
      const inputResponses = { go: { action: "accept", content: { go: true } } };
      expect((await ask("tasks/update", { taskId, inputResponses }, capabilities)).error).toBeUndefined();
      const done = await until(
        async () => (await ask("tasks/get", { taskId }, capabilities)).result,
        (task) => task?.["status"] === "completed",
      );
      expect(done?.["result"].content[0].text).toBe("went on");
    });

    test("a tool that is only a task is refused to clients without the extension, and so are its methods", async () => {
      for (const { error } of [await call("only_as_task"), await ask("tasks/get", { taskId: "x" })]) {
        expect(error).toMatchObject({
          code: -32021,
          data: expectedData("missing_capability", { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } }),
        });
      }
    });

    test("a task that does not exist is -32602", async () => {
      expect((await ask("tasks/get", { taskId: "nothing" }, TASKS)).error).toMatchObject({
        code: -32602,
        data: expectedData("task_not_found"),
      });
    });
  });
});
