import { mkdtempSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, type ClientRequest, request as httpRequest } from "node:http";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { configSchema } from "../../src/config/schema.ts";
import { assemble, type Assembly } from "../../src/server/assemble.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { HttpTransport } from "../../src/transports/http/http-transport.ts";
import { StdioTransport } from "../../src/transports/stdio/stdio-transport.ts";
import {
  BAD_CALLS,
  type CorpusRequest,
  GOOD_CALLS,
  INITIALIZE,
  METHODS,
  mirrorHeaders,
  NOTIFICATIONS,
  pathsOf,
  replaced,
  SKILL_READS,
  withEnvelope,
  WRONG_VALUES,
} from "./corpus.ts";
import { SHOP, skillFolder } from "../integration/skill-fixture.ts";
import { type Answer, EventReader, openResponse, send as sendOnce } from "./http-client.ts";
import { dueFor } from "./json-rpc-oracle.ts";
import { readLines } from "./read-lines.ts";
import { HANDLERS, MANY_CALLS } from "./server.ts";

/** How often the fast path has run a call, in this process. */
const fast = vi.hoisted(() => ({ runs: 0 }));

vi.mock(import("../../src/protocol/fast-call.ts"), async (importOriginal) => {
  const original = await importOriginal();
  return {
    ...original,
    runFastCall: (...args) => {
      fast.runs += 1;
      return original.runFastCall(...args);
    },
  };
});

interface Side {
  readonly assembly: Assembly;
  readonly transport: HttpTransport;
  readonly origin: string;
}

let folder: string;
let sides: { readonly fast: Side; readonly sdk: Side };
const CONFORMANCE_HANDLERS = join(import.meta.dirname, "../conformance/handlers");
const ANSWER_WITHIN_MS = 20_000;
const agent = new Agent({ keepAlive: true });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "owlclaw-test-"));
  sides = { fast: await startSide(true), sdk: await startSide(false) };
});

afterAll(async () => {
  agent.destroy();
  for (const { assembly, transport } of Object.values(sides)) {
    await transport.drain(0);
    await transport.close();
    await assembly.close();
  }
  await rm(folder, { recursive: true, force: true });
});

function settings() {
  return configSchema.parse({
    transport: "http",
    http: { host: "127.0.0.1", port: 0 },
    handlers: { paths: [HANDLERS, CONFORMANCE_HANDLERS] },
    sandbox: { enabled: false, root: mkdtempSync(join(folder, "side-")) },
    skills: { dir: skills },
    governance: {
      defaults: MANY_CALLS,
      rules: [{ id: "no-tone", effect: "deny", when: 'uri == "skill://support/tone"', reason: "not for everybody" }],
    },
  });
}

async function startSide(fastPath: boolean): Promise<Side> {
  const config = settings();
  const assembly = await assemble({ config, logger: SILENT_LOGGER });
  const authenticator = await createAuthenticator({ auth: config.auth, logger: SILENT_LOGGER });
  const transport = new HttpTransport({ mcp: assembly.mcp, config, authenticator, fastPath });
  return { assembly, transport, origin: new URL(await transport.listen()).origin };
}

/** One request on its way to both sides. */
interface Shot {
  readonly name: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const ACCEPTS = ["application/json, text/event-stream", "application/json", "*/*", ""];
const CALLS = [...GOOD_CALLS, ...BAD_CALLS, ...SKILL_READS];
/** The two sides read the same files. */
const skills = skillFolder(SHOP);
const ODD_IDS = ["", "id", 0, -1, 9_007_199_254_740_991, "\u0000\u{1F989}", "x".repeat(2000)];

const TYPED_CALL: CorpusRequest = {
  method: "tools/call",
  params: { name: "typed", arguments: { text: "a", count: 1, list: ["b"] } },
};
const SKILL_READ: CorpusRequest = {
  method: "resources/read",
  params: { uri: "skill://ecommerce/refund", _meta: { "io.owlclaw/read": { range: "bytes=0-1" } } },
};

/** Every way in which one field of a good request can be wrong, the id left alone. */
function bentCalls(): CorpusRequest[] {
  return [TYPED_CALL, SKILL_READ].flatMap((good) =>
    pathsOf(good).flatMap((path) =>
      [undefined, ...WRONG_VALUES].map((wrong) => replaced(good, path, wrong) as CorpusRequest),
    ),
  );
}

function bodyOf({ method, params }: CorpusRequest, id: unknown): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, ...(params !== undefined && { params }) });
}

function shotsOf(era: string, session: Record<string, string>): Shot[] {
  const isModern = era === "modern";
  const requests = [...CALLS, ...METHODS, ...bentCalls()].map((request) =>
    isModern ? withEnvelope(request) : request,
  );
  const shots = requests.map((request, index) => ({
    name: `${index} ${request.method} ${JSON.stringify(request.params)?.slice(0, 80)}`,
    body: bodyOf(request, `r${index}`),
    headers: {
      accept: ACCEPTS[isModern ? 0 : index % ACCEPTS.length] ?? "",
      ...(isModern ? mirrorHeaders(request) : session),
    },
  }));
  const [first] = requests;
  if (first === undefined) return shots;
  const { headers } = shots[0] ?? { headers: {} };
  const odd = ODD_IDS.map((id) => ({ name: `id ${String(id).slice(0, 20)}`, body: bodyOf(first, id), headers }));
  const raw = [
    "",
    "{",
    "[]",
    "null",
    '{"jsonrpc":"2.0","id":null,"method":"ping"}',
    `[${bodyOf(first, 1)},${bodyOf(first, 2)}]`,
  ].map((body) => ({ name: `raw ${body.slice(0, 40)}`, body, headers }));
  const silent = NOTIFICATIONS.map((request) => ({
    name: request.method,
    body: JSON.stringify({ jsonrpc: "2.0", ...(isModern ? withEnvelope(request) : request) }),
    headers: isModern ? mirrorHeaders(request) : headers,
  }));
  return [...shots, ...odd, ...raw, ...silent, ...(isModern ? headerShots(first) : [])];
}

/** In the revision without handshake the headers mirror the body; here they do not. */
function headerShots(request: CorpusRequest): Shot[] {
  const good = mirrorHeaders(request);
  const wrong: Record<string, Record<string, string>> = {
    "another method": { ...good, "mcp-method": "tools/list" },
    "another name": { ...good, "mcp-name": "whoami" },
    "a name in other letters": { ...good, "mcp-name": "ECHO" },
    "a name in base64": { ...good, "mcp-name": "=?base64?ZWNobw==?=" },
    "no name": Object.fromEntries(Object.entries(good).filter(([name]) => name !== "mcp-name")),
    "no method": Object.fromEntries(Object.entries(good).filter(([name]) => name !== "mcp-method")),
    "no version": Object.fromEntries(Object.entries(good).filter(([name]) => name !== "mcp-protocol-version")),
    "an unknown version": { ...good, "mcp-protocol-version": "2099-01-01" },
    "an older version": { ...good, "mcp-protocol-version": "2025-06-18" },
    "a surplus header": { ...good, "mcp-param-region": "eu" },
    "plain JSON only": { ...good, accept: "application/json" },
    "no accept": { ...good, accept: "" },
  };
  const region: CorpusRequest = withEnvelope({
    method: "tools/call",
    params: { name: "headed", arguments: { region: "eu" } },
  });
  const regions = ["eu", "us", "=?base64?ZXU=?=", "=?base64?%%?="].map((value) => ({
    name: `region ${value}`,
    body: bodyOf(region, 1),
    headers: { ...mirrorHeaders(region), "mcp-param-region": value },
  }));
  return [...Object.entries(wrong).map(([name, headers]) => ({ name, body: bodyOf(request, 1), headers })), ...regions];
}

interface Outcome {
  readonly status: number;
  readonly type: string | undefined;
  readonly messages: unknown;
}

async function fire({ origin }: Side, { body, headers }: Shot): Promise<Outcome> {
  const request = httpRequest(`${origin}/mcp`, {
    agent,
    method: "POST",
    headers: { "content-type": "application/json", ...withoutEmpty(headers) },
  });
  request.end(body);
  const response = await Promise.race([once(request, "response").then(([opened]) => opened), tooLate(request)]);
  if (response === undefined) return { status: 0, type: undefined, messages: "no answer" };
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
  const type: string | undefined = response.headers["content-type"];
  return {
    status: response.statusCode,
    type,
    messages: type === "text/event-stream" ? eventsOf(text) : normalized(parsed(text)),
  };
}

/** A hang is an outcome too, and is told by name. */
async function tooLate(request: ClientRequest): Promise<undefined> {
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, ANSWER_WITHIN_MS);
    request.once("response", () => clearTimeout(timer));
  });
  request.on("error", () => undefined).destroy();
}

function eventsOf(text: string): unknown[] {
  return [...text.matchAll(/^data: (.+)$/gm)].map((match) => normalized(parsed(match[1] ?? "")));
}

function parsed(text: string): unknown {
  return text === "" ? undefined : JSON.parse(text);
}

/** What may differ between two equal answers: traces, what is made at random, and what time gives back of a quota. */
const RANDOM = new Set([
  "trace_id",
  "requestState",
  "taskId",
  "createdAt",
  "lastUpdatedAt",
  "remaining",
  "reset_seconds",
]);

function normalized(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normalized);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, child]) => [key, RANDOM.has(key) ? typeof child : normalized(child)]),
  );
}

function withoutEmpty(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ""));
}

async function sessionOf(side: Side, era: string): Promise<Record<string, string>> {
  if (era === "plain" || era === "modern") return {};
  const { capabilities, clientInfo } = INITIALIZE.params ?? {};
  const request = httpRequest(`${side.origin}/mcp`, {
    agent,
    method: "POST",
    headers: { "content-type": "application/json" },
  });
  request.end(bodyOf({ method: "initialize", params: { protocolVersion: era, capabilities, clientInfo } }, 0));
  const [response] = await once(request, "response");
  response.resume();
  await once(response, "end");
  const headers = { "mcp-session-id": String(response.headers["mcp-session-id"]), "mcp-protocol-version": era };
  await fire(side, { name: "", body: '{"jsonrpc":"2.0","method":"notifications/initialized"}', headers });
  return headers;
}

async function volley(side: Side, era: string): Promise<Map<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  // What asks the client back would wait for its answer: the next test is for those.
  for (const shot of shotsOf(era, await sessionOf(side, era))) {
    if (era !== "plain" && era !== "modern" && shot.body.includes('"name":"ask"')) continue;
    outcomes.set(shot.name, await fire(side, shot));
  }
  return outcomes;
}

describe("the fast path and the SDK give equal answers over HTTP", () => {
  test.each(["plain", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "modern"])("%s", async (era) => {
    fast.runs = 0;
    const slow = await volley(sides.sdk, era);
    expect(fast.runs, "calls on the fast path while it is off").toBe(0);
    const quick = await volley(sides.fast, era);
    expect(fast.runs, "calls on the fast path").toBeGreaterThan(30);
    expect(fast.runs, "not everything is for the fast path").toBeLessThan(quick.size);
    expect(quick.size).toBeGreaterThan(250);
    const read = [...quick].filter(([name]) => name.includes("resources/read")).map(([, { messages }]) => messages);
    expect(JSON.stringify(read), "a read that governance refuses").toContain("not for everybody");
    expect(JSON.stringify(read), "a part of a skill").toContain('"range":{"start":0');
    for (const [name, outcome] of quick) {
      expect.soft(outcome.status, `${name} is answered`).not.toBe(0);
      expect.soft(outcome, name).toEqual(slow.get(name));
    }
  });
});

/** Tools that wait for somebody, or say something else each time. */
const UNSTEADY = new Set(["hold", "vitals", "held", "chatter", "big"]);
const ANY_ARGUMENTS = {
  message: "m",
  prompt: "p",
  name: "n",
  text: "t",
  filename: "f",
  seconds: 0,
  label: "l",
  a: 1,
  b: 2,
};

describe("the fast path and the SDK give equal answers to what the conformance suite calls", () => {
  test.each([
    ["plain", {}],
    ["modern, from a client that can do nothing", {}],
    [
      "modern, from a client that can do everything",
      {
        elicitation: { form: {}, url: {} },
        sampling: {},
        roots: {},
        extensions: { "io.modelcontextprotocol/tasks": {} },
      },
    ],
  ])("%s", async (era, capabilities) => {
    const { registry } = sides.sdk.assembly.mcp.pipeline;
    const names = registry.tools().map(({ name }) => name);
    const requests = names
      .filter((name) => !UNSTEADY.has(name))
      .flatMap((name) =>
        [{}, ANY_ARGUMENTS].map((args) => ({ method: "tools/call", params: { name, arguments: args } })),
      );
    expect(names).toContain("test_simple_text");
    fast.runs = 0;
    for (const request of requests) {
      const shaped = era === "plain" ? request : withEnvelope(request, capabilities);
      const headers = era === "plain" ? { accept: "application/json, text/event-stream" } : mirrorHeaders(shaped);
      const shot = { name: request.params.name, body: bodyOf(shaped, 1), headers };
      const [quick, slow] = await Promise.all([fire(sides.fast, shot), fire(sides.sdk, shot)]);
      expect.soft(quick.status, `${shot.name} is answered`).not.toBe(0);
      expect.soft(quick, shot.name).toEqual(slow);
    }
    expect(fast.runs).toBeGreaterThan(20);
    expect(fast.runs).toBeLessThanOrEqual(requests.length);
  });
});

interface Conversed {
  /** As texts with sorted keys, in an order of their own: on one line answers overtake each other. */
  readonly answers: readonly string[];
  readonly asked: number;
}

/** A client on stdio that answers whatever it is asked, and collects what it is told. */
async function converse(fastPath: boolean, first: readonly string[], lines: readonly string[]): Promise<Conversed> {
  const assembly = await assemble({ config: settings(), logger: SILENT_LOGGER });
  const input = new PassThrough();
  const output = new PassThrough();
  const transport = new StdioTransport({
    mcp: assembly.mcp,
    clientId: "stdio",
    maxLineBytes: 1_000_000,
    input,
    output,
    fastPath,
  });
  const answers: unknown[] = [];
  let asked = 0;
  let onFirst = (): void => {};
  const firstAnswer = new Promise<void>((resolve) => {
    onFirst = resolve;
  });
  readLines(output, (line) => {
    onFirst();
    const message = JSON.parse(line);
    if (message.method === "elicitation/create") {
      asked += 1;
      const result = { action: "accept", content: { name: "Ada" } };
      input.write(`${JSON.stringify({ jsonrpc: "2.0", id: message.id, result })}\n`);
      answers.push({ ...message, id: "a question" });
    } else answers.push(normalized(message));
  });
  for (const line of first) input.write(`${line}\n`);
  if (first.length > 0) await firstAnswer;
  for (const line of lines) input.write(`${line}\n`);
  const told = (): string[] => answers.map((answer) => JSON.stringify(sortKeys(answer))).sort();
  await allAnswered(lines, () => ({ answers: told(), asked }));
  await transport.close(10_000);
  await assembly.close();
  return { answers: told(), asked };
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, child]) => [key, sortKeys(child)]),
  );
}

/** What a client of one era says. */
function linesOf(era: string): { readonly first: readonly string[]; readonly lines: readonly string[] } {
  const isModern = era === "modern";
  const envelope = (request: CorpusRequest): CorpusRequest => (isModern ? withEnvelope(request) : request);
  const requests = [...CALLS, ...METHODS.filter(({ method }) => method !== "logging/setLevel"), ...bentCalls()].map(
    envelope,
  );
  const handshake = [
    bodyOf({ method: "initialize", params: { ...INITIALIZE.params, protocolVersion: era } }, "hello"),
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
  ];
  const raw = ["{", "[]", "null", '{"jsonrpc":"1.0","id":1}', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}'];
  const silent = NOTIFICATIONS.map((request) => JSON.stringify({ jsonrpc: "2.0", ...envelope(request) }));
  return {
    first: era === "plain" || isModern ? [] : handshake,
    lines: [
      ...requests.map((request, index) => bodyOf(request, `r${index}`)),
      ...raw,
      ...silent,
      bodyOf(envelope({ method: "tools/call", params: { name: "times_out" } }), "the end"),
    ],
  };
}

/** The last line may be answered before the others: its time is up when it is, whatever its worker is busy with. */
async function allAnswered(lines: readonly string[], conversed: () => Conversed): Promise<void> {
  await vi.waitFor(() => expect(unansweredOf(lines, conversed())).toEqual([]), { timeout: 60_000, interval: 200 });
}

function unansweredOf(lines: readonly string[], { answers }: Conversed): unknown[] {
  return lines
    .map((line) => dueFor(Buffer.from(line)))
    .filter(
      (due) => due.kind === "answer" && !answers.some((answer) => answer.includes(`"id":${JSON.stringify(due.id)},`)),
    );
}

describe("the fast path and the SDK give equal answers over stdio", () => {
  test.each(["plain", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "modern"])("%s", async (era) => {
    const { first, lines } = linesOf(era);
    fast.runs = 0;
    const slow = await converse(false, first, lines);
    expect(fast.runs).toBe(0);
    const quick = await converse(true, first, lines);
    expect(fast.runs).toBeGreaterThan(30);
    expect(fast.runs).toBeLessThan(lines.length);
    expect(quick).toEqual(slow);
    expect(unansweredOf(lines, quick)).toEqual([]);
    expect(quick.answers.length).toBeGreaterThan(250);
    expect(quick.asked > 0, "clients with a handshake were asked").toBe(first.length > 0);
  });
});

/** A client that is asked something, and is gone before it answers. */
async function leaveUnanswered(fastPath: boolean): Promise<readonly unknown[]> {
  const assembly = await assemble({ config: settings(), logger: SILENT_LOGGER });
  const input = new PassThrough();
  const output = new PassThrough();
  const options = { mcp: assembly.mcp, clientId: "stdio", maxLineBytes: 1_000_000, input, output, fastPath };
  const transport = new StdioTransport(options);
  const told: { readonly id?: unknown; readonly method?: string }[] = [];
  readLines(output, (line) => told.push(JSON.parse(line)));
  const { first } = linesOf("2025-11-25");
  for (const line of first) input.write(`${line}\n`);
  await vi.waitFor(() => expect(told).toHaveLength(1), 20_000);
  for (const name of ["ask", "echo"]) {
    input.write(`${bodyOf({ method: "tools/call", params: { name, arguments: { text: "t" } } }, name)}\n`);
  }
  await vi.waitFor(() => expect(told).toHaveLength(3), { timeout: 10_000 });
  input.end();
  await transport.ended;
  await transport.close(100);
  await assembly.close();
  return told.filter(({ method }) => method === undefined).map(normalized);
}

test("a client that leaves a question unanswered gets the same last words on both paths", async () => {
  const slow = await leaveUnanswered(false);
  expect(slow.at(-1)).toMatchObject({ id: "ask", error: { data: { kind: "shutting_down" } } });
  expect(await leaveUnanswered(true)).toEqual(slow);
});

/** A client of the older transport: posts, and reads everything on its one stream. */
async function converseOverSse({ origin }: Side, lines: readonly string[]): Promise<Conversed> {
  const hangUp = new AbortController();
  const stream = new EventReader(await openResponse(`${origin}/mcp/sse`, { signal: hangUp.signal }));
  const { data: endpoint } = await stream.find(({ event }) => event === "endpoint");
  const headers = { "content-type": "application/json" };
  const send = (body: string): Promise<Answer> => sendOnce(`${origin}${endpoint}`, { method: "POST", headers, body });
  const answers: unknown[] = [];
  let asked = 0;
  const read = stream.find(({ data }) => {
    const message = JSON.parse(data);
    if (message.method === "elicitation/create") {
      asked += 1;
      const result = { action: "accept", content: { name: "Ada" } };
      void send(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
      answers.push({ ...message, id: "a question" });
    } else answers.push(normalized(message));
    return false;
  });
  const gone = read.catch(() => undefined);
  for (const line of lines) {
    const { status, json } = await send(line);
    // What cannot be read is refused at once; all the rest is answered on the stream.
    if (status !== 202) answers.push({ status, json: normalized(json) });
  }
  const told = (): string[] => answers.map((answer) => JSON.stringify(sortKeys(answer))).sort();
  await allAnswered(lines, () => ({ answers: told(), asked }));
  hangUp.abort();
  await gone;
  return { answers: told(), asked };
}

describe("the fast path and the SDK give equal answers over the older SSE transport", () => {
  test.each(["plain", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "modern"])("%s", async (era) => {
    const { first, lines } = linesOf(era);
    fast.runs = 0;
    const slow = await converseOverSse(sides.sdk, [...first, ...lines]);
    expect(fast.runs, "calls on the fast path while it is off").toBe(0);
    const quick = await converseOverSse(sides.fast, [...first, ...lines]);
    expect(fast.runs, "calls on the fast path").toBeGreaterThan(30);
    expect(fast.runs, "not everything is for the fast path").toBeLessThan(lines.length);
    expect(quick).toEqual(slow);
    expect(unansweredOf(lines, quick)).toEqual([]);
    expect(quick.answers.length).toBeGreaterThan(250);
    expect(quick.asked > 0, "clients with a handshake were asked").toBe(first.length > 0);
  });
});

const LISTENS: Readonly<Record<string, unknown>> = {
  "one list": { toolsListChanged: true },
  "every list": { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true },
  "one resource": { resourceSubscriptions: ["note://01"] },
  everything: {
    toolsListChanged: true,
    promptsListChanged: true,
    resourcesListChanged: true,
    resourceSubscriptions: ["note://01", "note://02"],
  },
  "what is refused": { toolsListChanged: false, promptsListChanged: true },
  "an unknown kind": { promptsListChanged: true, nothingChanged: true },
  nothing: {},
};

/** Listens, lets the server change, calls a tool meanwhile, and says all that was told on the way. */
async function listen(side: Side, notifications: unknown, id: string | number): Promise<unknown[]> {
  const { changes } = side.assembly.mcp;
  const hangUp = new AbortController();
  const request = withEnvelope({ method: "subscriptions/listen", params: { notifications } });
  const response = await openResponse(`${side.origin}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", ...mirrorHeaders(request) },
    body: bodyOf(request, id),
    signal: hangUp.signal,
  });
  const told: unknown[] = [{ status: response.statusCode, type: response.headers["content-type"] }];
  const stream = new EventReader(response);
  const tell = async (): Promise<void> => {
    told.push(normalized(JSON.parse((await stream.next())?.data ?? "null")));
  };
  await tell();
  for (const list of ["tools", "prompts", "resources"] as const) changes.listChanged(list);
  for (const uri of ["note://01", "note://02", "note://03"]) changes.resourceUpdated(uri);
  const call = withEnvelope({ method: "tools/call", params: { name: "whoami", arguments: {} } });
  told.push(await fire(side, { name: "meanwhile", body: bodyOf(call, id), headers: mirrorHeaders(call) }));
  for (let due = dueOf(notifications); due > 0; due--) await tell();
  hangUp.abort();
  return told;
}

function dueOf(notifications: unknown): number {
  const { resourceSubscriptions = [], ...lists } = notifications as Record<string, unknown>;
  const known = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"].filter(
    (kind) => lists[kind] === true,
  );
  return known.length + (resourceSubscriptions as unknown[]).length;
}

describe("a server with the fast path and one without tell the same to who listens", () => {
  test.each(Object.entries(LISTENS))("%s", async (_name, notifications) => {
    for (const id of ["sub", 7]) {
      fast.runs = 0;
      const slow = await listen(sides.sdk, notifications, id);
      expect(fast.runs).toBe(0);
      const quick = await listen(sides.fast, notifications, id);
      expect(fast.runs, "the call meanwhile").toBe(1);
      expect(quick).toEqual(slow);
      expect(quick.length).toBe(3 + dueOf(notifications));
      expect(quick).not.toContain(null);
    }
  });

  test("what is no good request to listen is refused alike", async () => {
    const good: CorpusRequest = {
      method: "subscriptions/listen",
      params: { notifications: { toolsListChanged: true, resourceSubscriptions: ["note://01"] } },
    };
    const bent = pathsOf(good.params)
      .flatMap((path) => [undefined, ...WRONG_VALUES].map((wrong) => replaced(good.params, path, wrong)))
      .map((params) => withEnvelope({ method: good.method, params: params as Record<string, unknown> }));
    let refused = 0;
    for (const request of bent) {
      const shot = { name: "", body: bodyOf(request, 1), headers: mirrorHeaders(request) };
      const [quick, slow] = await Promise.all([peek(sides.fast, shot), peek(sides.sdk, shot)]);
      expect.soft(quick, shot.body.slice(0, 200)).toEqual(slow);
      if (JSON.stringify(quick).includes('"error"')) refused += 1;
    }
    expect(refused).toBeGreaterThan(20);
  });
});

/** The same on one line for everything; in an order of its own, since the call's answer may come between. */
async function listenOnStdio(
  { assembly: { mcp } }: Side,
  fastPath: boolean,
  notifications: unknown,
): Promise<string[]> {
  const input = new PassThrough();
  const output = new PassThrough();
  const options = { mcp, clientId: "stdio", maxLineBytes: 1_000_000, input, output, fastPath };
  const transport = new StdioTransport(options);
  const told: unknown[] = [];
  readLines(output, (line) => told.push(normalized(JSON.parse(line))));
  input.write(`${bodyOf(withEnvelope({ method: "subscriptions/listen", params: { notifications } }), "sub")}\n`);
  await vi.waitFor(() => expect(told).toHaveLength(1), { timeout: 10_000 });
  for (const list of ["tools", "prompts", "resources"] as const) mcp.changes.listChanged(list);
  for (const uri of ["note://01", "note://02", "note://03"]) mcp.changes.resourceUpdated(uri);
  input.write(`${bodyOf(withEnvelope({ method: "tools/call", params: { name: "whoami", arguments: {} } }), "call")}\n`);
  await vi.waitFor(() => expect(told.length).toBeGreaterThanOrEqual(2 + dueOf(notifications)), { timeout: 10_000 });
  input.end();
  await transport.ended;
  // Whoever listens is not waited for.
  await transport.close(600_000);
  return told.map((message) => JSON.stringify(sortKeys(message))).sort();
}

describe("a server with the fast path and one without tell the same to who listens over stdio", () => {
  test.each(Object.entries(LISTENS))("%s", async (_name, notifications) => {
    fast.runs = 0;
    const slow = await listenOnStdio(sides.sdk, false, notifications);
    expect(fast.runs).toBe(0);
    const quick = await listenOnStdio(sides.fast, true, notifications);
    expect(fast.runs, "the call meanwhile").toBe(1);
    expect(quick).toEqual(slow);
    expect(quick.filter((message) => message.includes('"method":"notifications/')).length).toBeGreaterThanOrEqual(
      dueOf(notifications),
    );
  });
});

/** The status and the first thing that is said: what listens has no end of its own. */
async function peek({ origin }: Side, { body, headers }: Shot): Promise<unknown> {
  const hangUp = new AbortController();
  const response = await openResponse(`${origin}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body,
    signal: hangUp.signal,
  });
  const isStream = response.headers["content-type"] === "text/event-stream";
  const text = isStream ? ((await new EventReader(response).next())?.data ?? "null") : await textOf(response);
  hangUp.abort();
  return { status: response.statusCode, isStream, said: normalized(parsed(text)) };
}
