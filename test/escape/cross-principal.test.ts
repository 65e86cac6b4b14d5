import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RequestStates } from "../../src/mcp/request-state.ts";
import { createTokenKeys, goodClaims } from "./forge-token.ts";
import {
  type Answer,
  bearer,
  callTool,
  EventReader,
  eventually,
  modern,
  openResponse,
  openSession,
  post,
  rpc,
  send,
} from "./http-client.ts";
import { HANDLERS, type HttpServerProcess, startHttp } from "./server.ts";
import { attackedServerAuth, goodToken } from "./token-attacks.ts";

const keys = createTokenKeys();
const alice = tokenOf("alice");
const mallory = tokenOf("mallory");
const EVENTS = { accept: "text/event-stream" };
const ELICITATION = { elicitation: {} };
const TASKS = { ...ELICITATION, extensions: { "io.modelcontextprotocol/tasks": {} } };
const STATE_REFUSED = {
  error: { code: -32602, message: expect.stringContaining("requestState"), data: { kind: "invalid_params" } },
};
const ACCEPT = { action: "accept", content: { name: "Mallory" } };

let server: HttpServerProcess;
let origin: string;

beforeAll(async () => {
  server = await startHttp({ config: { auth: attackedServerAuth("secret", keys) } });
  ({ origin } = server);
});

afterAll(() => server.stop());

describe("a session id of another principal", () => {
  test("is dead on POST, and the answer is that of an id that never was", async () => {
    const headers = await openSession(origin, { token: alice });
    const stolen = await rpc(origin, "tools/list", {}, { token: mallory, headers, id: 1 });
    const invented = await rpc(
      origin,
      "tools/list",
      {},
      { token: mallory, headers: { ...headers, "mcp-session-id": "never" }, id: 1 },
    );
    expect(stolen.status).toBe(404);
    expect(withoutTrace(stolen)).toEqual(withoutTrace(invented));
    expect((await rpc(origin, "ping", {}, { token: alice, headers })).json.result).toEqual({});
  });

  test("is dead on GET", async () => {
    const headers = await openSession(origin, { token: alice });
    const answer = await send(`${origin}/mcp`, { headers: { ...headers, ...EVENTS, ...bearer(mallory) } });
    expect(answer.status).toBe(404);
  });

  test("is dead on DELETE, and the session lives on", async () => {
    const headers = await openSession(origin, { token: alice });
    const answer = await send(`${origin}/mcp`, { method: "DELETE", headers: { ...headers, ...bearer(mallory) } });
    expect(answer.status).toBe(404);
    expect((await rpc(origin, "ping", {}, { token: alice, headers })).status).toBe(200);
  });

  test("is dead after its owner ended it, for the owner too", async () => {
    const headers = await openSession(origin, { token: alice });
    await send(`${origin}/mcp`, { method: "DELETE", headers: { ...headers, ...bearer(alice) } });
    expect((await rpc(origin, "ping", {}, { token: alice, headers })).status).toBe(404);
  });

  test("does not keep the session from ending: what is refused does not count as use", async () => {
    const brief = await startHttp({
      config: { auth: attackedServerAuth("secret", keys), http: { sessionIdleSeconds: 1 } },
    });
    try {
      const headers = await openSession(brief.origin, { token: alice });
      const sessions = async (): Promise<number> => {
        await rpc(brief.origin, "ping", {}, { token: mallory, headers });
        return (await send(`${brief.origin}/mcp`, { headers: bearer(mallory) })).json.sessions;
      };
      expect(await eventually(sessions, (count) => count === 0)).toBe(0);
    } finally {
      await brief.stop();
    }
  });
});

test("one principal that opens session after session does not end those of others", async () => {
  const small = await startHttp({ config: { auth: attackedServerAuth("secret", keys), http: { maxSessions: 4 } } });
  try {
    const headers = await openSession(small.origin, { token: alice });
    for (let opened = 0; opened < 12; opened++) await openSession(small.origin, { token: mallory });
    expect((await rpc(small.origin, "ping", {}, { token: alice, headers })).status).toBe(200);
    expect((await send(`${small.origin}/mcp`, { headers: bearer(alice) })).json.sessions).toBeLessThanOrEqual(4);
  } finally {
    await small.stop();
  }
});

describe("a Last-Event-ID of another principal", () => {
  test("is dead with the owner's session id and with one's own", async () => {
    const { headers, lastEventId } = await streamedCall("resume-1");
    const own = await openSession(origin, { token: mallory });
    for (const session of [headers, own]) {
      const answer = await send(`${origin}/mcp`, {
        headers: { ...session, ...EVENTS, ...bearer(mallory), "last-event-id": lastEventId },
      });
      expect([400, 404]).toContain(answer.status);
      expect(answer.text).not.toContain("x".repeat(16));
    }
  });

  test("is dead in another session of the same principal", async () => {
    const { lastEventId } = await streamedCall("resume-2");
    const other = await openSession(origin, { token: alice });
    const answer = await send(`${origin}/mcp`, {
      headers: { ...other, ...EVENTS, ...bearer(alice), "last-event-id": lastEventId },
    });
    expect(answer.status).toBe(400);
  });

  test("is good for its owner: the stream goes on after it", async () => {
    const { headers, lastEventId } = await streamedCall("resume-3");
    const stream = await openResponse(`${origin}/mcp`, {
      headers: { ...headers, ...EVENTS, ...bearer(alice), "last-event-id": lastEventId },
    });
    const { data } = await new EventReader(stream).find((event) => event.data.includes('"result"'));
    expect(JSON.parse(data)).toMatchObject({ id: "resume-3", result: { content: [{ text: "said everything" }] } });
  });
});

describe("the sessionId of another's event stream", () => {
  test("is dead on POST /mcp/messages, and nothing shows on the stream", async () => {
    const stream = await openResponse(`${origin}/mcp/sse`, { headers: { ...EVENTS, ...bearer(alice) } });
    const events = new EventReader(stream);
    const { data: endpoint } = await events.find(({ event }) => event === "endpoint");
    const body = (id: string): string => JSON.stringify({ jsonrpc: "2.0", id, method: "ping" });
    const knock = (token: string, id: string): Promise<Answer> =>
      send(`${origin}${endpoint}`, { method: "POST", headers: bearer(token), body: body(id) });
    expect((await knock(mallory, "stolen")).status).toBe(404);
    expect((await knock(alice, "own")).status).toBe(202);
    const { data } = await events.find(({ event }) => event === "message");
    expect(JSON.parse(data)).toEqual({ jsonrpc: "2.0", id: "own", result: {} });
    stream.destroy();
  });
});

describe("a task id of another principal", () => {
  const tasks = (method: string, params: Record<string, unknown>, token: string): Promise<Answer> =>
    modern(origin, method, params, { token, capabilities: TASKS });

  test.each(["tasks/get", "tasks/cancel", "tasks/update"])("is dead in %s, like one that never was", async (method) => {
    const key = `task ${method}`;
    const started = await tasks("tools/call", { name: "job", arguments: { key } }, alice);
    const { taskId } = started.json.result;
    const params = method === "tasks/update" ? { inputResponses: { name: ACCEPT } } : {};
    const stolen = await tasks(method, { taskId, ...params }, mallory);
    const invented = await tasks(method, { taskId: "never", ...params }, mallory);
    expect(stolen.json.error.data.kind).toBe("task_not_found");
    expect(stolen.json.error.code).toBe(invented.json.error.code);
    expect(stolen.status).toBe(invented.status);
    expect(stolen.text).not.toContain("secret of");
    const state = await tasks("tasks/get", { taskId }, alice);
    expect(state.json.result.status).toBe("working");
    await tasks("tasks/cancel", { taskId }, alice);
    expect((await tasks("tasks/get", { taskId }, alice)).json.result.status).toBe("cancelled");
  });

  test("does not answer what the task asks its owner", async () => {
    const started = await tasks("tools/call", { name: "asking_job" }, alice);
    const { taskId } = started.json.result;
    const status = async (): Promise<string> => (await tasks("tasks/get", { taskId }, alice)).json.result.status;
    await eventually(status, (value) => value === "input_required");
    await tasks("tasks/update", { taskId, inputResponses: { name: ACCEPT } }, mallory);
    expect(await status()).toBe("input_required");
    await tasks("tasks/update", { taskId, inputResponses: { name: { action: "decline" } } }, alice);
    await eventually(status, (value) => value === "completed");
    expect((await tasks("tasks/get", { taskId }, alice)).json.result.result.content[0].text).toBe("decline");
  });
});

describe("requestState", () => {
  const call = (token: string, params: Record<string, unknown>): Promise<Answer> =>
    modern(origin, "tools/call", params, { token, capabilities: ELICITATION });
  /** The state that comes with the second question holds the answer to the first. */
  const stateOf = async (token: string, topic: string): Promise<string> => {
    const answer = await call(token, {
      name: "ask_twice",
      arguments: { topic },
      inputResponses: { first: { action: "accept", content: { name: "Alice" } } },
    });
    expect(answer.json.result.resultType).toBe("input_required");
    return answer.json.result.requestState;
  };
  const inputResponses = { second: ACCEPT };
  const same = { name: "ask_twice", arguments: { topic: "a" } };

  test("opens for the same caller and the same request", async () => {
    const requestState = await stateOf(alice, "a");
    const answer = await call(alice, { ...same, requestState, inputResponses });
    expect(answer.json.result.content[0].text).toBe("a: accept accept");
  });

  test.each([
    ["another principal", mallory, same],
    ["another tool", alice, { name: "ask_other", arguments: { topic: "a" } }],
    ["no arguments", alice, { name: "ask_twice" }],
    ["other arguments", alice, { name: "ask_twice", arguments: { topic: "b" } }],
    ["more arguments", alice, { name: "ask_twice", arguments: { topic: "a", extra: 1 } }],
  ] as const)("is refused for %s", async (_name, token, params) => {
    const requestState = await stateOf(alice, "a");
    const answer = await call(token, { ...params, requestState, inputResponses });
    expect(answer.json).toMatchObject(STATE_REFUSED);
  });

  test("is refused for another method", async () => {
    const requestState = await stateOf(alice, "a");
    const answer = await modern(
      origin,
      "prompts/get",
      { ...same, requestState, inputResponses },
      { token: alice, capabilities: ELICITATION },
    );
    expect(answer.json).toMatchObject(STATE_REFUSED);
  });

  test("of a prompt opens for its prompt, and not for a tool of the same name and arguments", async () => {
    const get = (params: object): Promise<Answer> =>
      modern(origin, "prompts/get", { ...same, ...params }, { token: alice, capabilities: ELICITATION });
    const asked = await get({ inputResponses: { first: ACCEPT } });
    const { requestState } = asked.json.result;
    expect((await get({ requestState, inputResponses })).json.result.messages[0].content.text).toBe("a: accept accept");
    expect((await call(alice, { ...same, requestState, inputResponses })).json).toMatchObject(STATE_REFUSED);
  });

  test("is refused for another principal that uses the owner's request id, client label and client name", async () => {
    const options = { capabilities: ELICITATION, id: "shared", headers: { "x-mcp-client-id": "alice" } };
    const begun = await modern(
      origin,
      "tools/call",
      { ...same, inputResponses: { first: ACCEPT } },
      { ...options, token: alice },
    );
    const { requestState } = begun.json.result;
    const again = { ...same, requestState, inputResponses };
    const stolen = await modern(origin, "tools/call", again, { ...options, token: mallory });
    expect(stolen.json).toMatchObject({ id: "shared", ...STATE_REFUSED });
    const owned = await modern(origin, "tools/call", again, { ...options, token: alice });
    expect(owned.json.result.content[0].text).toBe("a: accept accept");
  });

  test("is refused wherever one character is changed, cut off or added", async () => {
    const requestState = await stateOf(alice, "a");
    const at = [0, 5, 16, 20, 37, Math.floor(requestState.length / 2), requestState.length - 2];
    const bent = at.map(
      (index) => requestState.slice(0, index) + other(requestState[index]) + requestState.slice(index + 1),
    );
    const cut = [
      requestState.slice(0, -4),
      requestState.slice(4),
      requestState.slice(0, 20),
      "A",
      "",
      `${requestState}AAAA`,
    ];
    for (const tampered of [...bent, ...cut]) {
      const { json } = await call(alice, { ...same, requestState: tampered, inputResponses });
      expect(json).toMatchObject(STATE_REFUSED);
    }
  });

  test("is refused when it has expired", () => {
    let nowMs = 0;
    const states = new RequestStates({ now: () => nowMs });
    const state = states.seal({ first: ACCEPT }, "alice");
    expect(states.open(state, "alice")).toEqual({ first: ACCEPT });
    nowMs = 24 * 3_600_000;
    expect(() => states.open(state, "alice")).toThrow("invalid or has expired");
  });

  test("is refused by a server that did not make it", () => {
    const state = new RequestStates().seal({}, "alice");
    expect(() => new RequestStates().open(state, "alice")).toThrow("invalid or has expired");
  });

  test("shows nothing of what it holds", async () => {
    const requestState = await stateOf(alice, "a");
    const bytes = Buffer.from(requestState, "base64url").toString("latin1");
    expect(bytes).not.toContain("Alice");
    expect(bytes).not.toContain("accept");
  });
});

describe("a cursor", () => {
  test.each([
    ["of another list", cursor(["tools", "a"])],
    ["without a list", cursor(["resources"])],
    ["with a number", cursor(["resources", 3])],
    ["that is an object", cursor({ 0: "resources", 1: "note://01" })],
    ["that is no JSON", Buffer.from("resources").toString("base64url")],
    ["of random bytes", "%%%%"],
    ["that is empty", ""],
  ])("%s is refused as invalid params", async (_name, forged) => {
    const answer = await rpc(origin, "resources/list", { cursor: forged }, { token: alice });
    expect(answer.json.error).toMatchObject({ code: -32602, data: { kind: "invalid_params" } });
  });

  test("shows no more than the list itself, wherever it points", async () => {
    const list = async (at?: string): Promise<{ uri: string }[]> =>
      (await rpc(origin, "resources/list", at === undefined ? {} : { cursor: at }, { token: mallory })).json.result
        .resources;
    const first = await rpc(origin, "resources/list", {}, { token: mallory });
    const all = [...first.json.result.resources, ...(await list(first.json.result.nextCursor))].map(({ uri }) => uri);
    expect(new Set(all).size).toBe(60);
    for (const key of ["", "note://05", "\uFFFF", "__proto__"]) {
      for (const { uri } of await list(cursor(["resources", key]))) expect(all).toContain(uri);
    }
  });
});

describe("cancelling another's request by its id", () => {
  let calm: HttpServerProcess;
  beforeAll(async () => {
    calm = await startHttp({
      config: {
        auth: attackedServerAuth("secret", keys),
        // What is held is in the handlers' memory: on a busy machine a second worker may answer, which holds nothing.
        handlers: { paths: [HANDLERS], isolation: "none" },
      },
    });
  });
  afterAll(() => calm.stop());

  const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "same-id" } };
  const stateOfHold = async (key: string): Promise<string | undefined> =>
    (await callTool(calm.origin, "held", {}, { token: alice })).json.result.structuredContent.holds[key];
  const whenHeld = (key: string): Promise<string | undefined> =>
    eventually(
      () => stateOfHold(key),
      (state) => state === "waiting",
    );

  test.each(["plain", "session", "modern"])("does nothing to a call that is %s", async (kind) => {
    const key = `cancel ${kind}`;
    const headers = kind === "session" ? await openSession(calm.origin, { token: alice }) : {};
    const params = { name: "hold", arguments: { key } };
    const running =
      kind === "modern"
        ? modern(calm.origin, "tools/call", params, { token: alice, id: "same-id" })
        : rpc(calm.origin, "tools/call", params, { token: alice, headers, id: "same-id" });
    await whenHeld(key);
    const foreign = await openSession(calm.origin, { token: mallory });
    await post(calm.origin, cancel, { token: mallory });
    await post(calm.origin, cancel, { token: mallory, headers: foreign });
    await post(calm.origin, cancel, { token: mallory, headers });
    await modern(calm.origin, "notifications/cancelled", { requestId: "same-id" }, { token: mallory });
    // A request with the same id in another's hands must not take its place either.
    await rpc(calm.origin, "ping", {}, { token: mallory, id: "same-id" });
    expect(await stateOfHold(key)).toBe("waiting");
    await callTool(calm.origin, "release", { key }, { token: alice });
    expect((await running).json).toMatchObject({ id: "same-id", result: { content: [{ text: `${key} done` }] } });
  });

  test("works for the owner, in the session that the request is in", async () => {
    const headers = await openSession(calm.origin, { token: alice });
    const key = "own cancel";
    const running = rpc(
      calm.origin,
      "tools/call",
      { name: "hold", arguments: { key } },
      { token: alice, headers, id: "same-id" },
    );
    await whenHeld(key);
    const elsewhere = await openSession(calm.origin, { token: alice });
    await post(calm.origin, cancel, { token: alice, headers: elsewhere });
    expect(await stateOfHold(key)).toBe("waiting");
    await post(calm.origin, cancel, { token: alice, headers });
    await eventually(
      () => stateOfHold(key),
      (state) => state === "cancelled",
    );
    expect((await running).status).toBe(202);
  });
});

describe("requests of many callers with the same id", () => {
  test.each([
    ["on the fast path", {}],
    ["through the SDK", { _meta: { progressToken: "same" } }],
  ])("get each their own answer %s", async (_name, rest) => {
    const shared = await openSession(origin, { token: alice });
    const calls = Array.from({ length: 60 }, async (_, index) => {
      const token = index % 2 === 0 ? alice : mallory;
      const tool = index % 3 === 0 ? "whoami" : "echo";
      const params = { name: tool, arguments: tool === "echo" ? { text: `text ${index}` } : {}, ...rest };
      const headers = index % 2 === 0 && index % 4 === 0 ? shared : {};
      const answer = await rpc(origin, "tools/call", params, { token, headers, id: "same" });
      const who = index % 2 === 0 ? "alice" : "mallory";
      return { got: answer.json.result.content[0].text, wanted: tool === "echo" ? `text ${index}` : who };
    });
    for (const { got, wanted } of await Promise.all(calls)) expect(got).toBe(wanted);
  });
});

describe("answering what another was asked", () => {
  test("in one's own session, on the plain line or in the other's session changes nothing", async () => {
    const owner = await openSession(origin, { token: alice, capabilities: ELICITATION });
    const stream = await openCall(owner, { id: "asked", name: "ask", arguments: { topic: "secret" } });
    const events = new EventReader(stream);
    const question = JSON.parse((await events.find(({ data }) => data.includes("elicitation/create"))).data);
    const answer = { jsonrpc: "2.0", id: question.id, result: ACCEPT };
    const foreign = await openSession(origin, { token: mallory, capabilities: ELICITATION });
    const asking = await openCall(foreign, { id: "own", name: "ask", arguments: {} }, mallory);
    await new EventReader(asking).find(({ data }) => data.includes("elicitation/create"));
    expect((await post(origin, answer, { token: mallory, headers: owner })).status).toBe(404);
    await post(origin, answer, { token: mallory, headers: foreign });
    await post(origin, answer, { token: mallory });
    await post(
      origin,
      { ...answer, result: { action: "accept", content: { name: "Alice" } } },
      { token: alice, headers: owner },
    );
    const { data } = await events.find((event) => event.data.includes('"result"'));
    expect(JSON.parse(data).result.content[0].text).toBe("secret: Alice");
    asking.destroy();
  });
});

/** A call whose answer is on a stream, and the id of the first event on it. */
async function streamedCall(id: string) {
  const headers = await openSession(origin, { token: alice });
  await rpc(origin, "logging/setLevel", { level: "info" }, { token: alice, headers });
  const stream = await openCall(headers, { id, name: "chatter", arguments: { messages: 3, chars: 16 } });
  const first = await new EventReader(stream).find((event) => event.id !== undefined);
  stream.destroy();
  return { headers, lastEventId: first.id ?? "" };
}

function openCall(
  session: Record<string, string>,
  { id, ...params }: { id: string; name: string; arguments: object },
  token = alice,
) {
  return openResponse(`${origin}/mcp`, {
    method: "POST",
    headers: { ...session, ...bearer(token), "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params }),
  });
}

function withoutTrace({ status, json }: Answer): unknown {
  return { status, ...json, error: { ...json.error, data: { ...json.error.data, trace_id: "" } } };
}

function tokenOf(sub: string): string {
  return goodToken("secret", keys, { ...goodClaims(keys), sub });
}

function cursor(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function other(character = ""): string {
  return character === "A" ? "B" : "A";
}
