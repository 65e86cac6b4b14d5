import { text as textOfStream } from "node:stream/consumers";
import {
  type CorpusRequest,
  mirrorHeaders,
  pathsOf,
  replaced,
  withEnvelope,
  WRONG_VALUES,
} from "../../escape/corpus.ts";
import { EventReader, eventually, openResponse } from "../../escape/http-client.ts";
import { type Exchange, type Heard, isObject } from "./recording.ts";
import { type Answering, HELPFUL, HttpClient, type Message, StdioClient, type WireClient } from "./wire-clients.ts";
import {
  connect,
  type ConnectionKind,
  exchange,
  initialize,
  INITIALIZED,
  LEGACY,
  MODERN,
  REVISIONS,
  textOf,
  TRANSPORTS,
} from "./wire-connections.ts";
import type { WireServer } from "./wire-server.ts";

const WITH_HANDSHAKE: readonly ConnectionKind[] = LEGACY.flatMap((revision) =>
  TRANSPORTS.map((transport) => ({ transport, revision })),
);
const WITHOUT_HANDSHAKE: readonly ConnectionKind[] = [
  { transport: "http", revision: MODERN },
  { transport: "stdio", revision: MODERN },
];
const EVERYTHING = {
  elicitation: { form: {}, url: {} },
  sampling: {},
  roots: {},
  extensions: { "io.modelcontextprotocol/tasks": {} },
};

const call = (name: string, args: object = {}, rest: object = {}): CorpusRequest => ({
  method: "tools/call",
  params: { name, arguments: args, ...rest },
});

/** What one connection hears in a scene. */
type Play = (client: WireClient, kind: ConnectionKind) => Promise<readonly unknown[]>;

async function scene(
  server: WireServer,
  { name, sent, kinds }: { readonly name: string; readonly sent: unknown; readonly kinds: readonly ConnectionKind[] },
  play: Play,
): Promise<Exchange> {
  const heard: Heard[] = [];
  for (const kind of kinds) {
    const client = await connect(server, kind);
    heard.push({ on: client.name, messages: await play(client, kind) });
    await client.close();
  }
  return { name, sent, heard };
}

/** An answer with what its connection adds to the name: over HTTP, the status and the type. */
function told(client: WireClient, { on, messages }: Heard): readonly unknown[] {
  const status = on.slice(client.name.length).trim();
  return status === "" ? messages : [status, ...messages];
}

const HANDSHAKES: readonly CorpusRequest[] = [
  ...REVISIONS.slice(1).map(initialize),
  ...["2099-01-01", "2024-10-07", "1.0", "", "DRAFT-2026"].map(initialize),
  ...[undefined, null, 1, {}].map((protocolVersion) => ({
    method: "initialize",
    params: { ...initialize("").params, protocolVersion },
  })),
  ...[undefined, null, 1, { name: "a" }, { name: "a", version: 1 }].map((clientInfo) => ({
    method: "initialize",
    params: { ...initialize("2025-11-25").params, clientInfo },
  })),
  ...[undefined, null, 1, { sampling: 1 }, { roots: { listChanged: "x" } }, { unknown: {} }].map((capabilities) => ({
    method: "initialize",
    params: { ...initialize("2025-11-25").params, capabilities },
  })),
  { method: "initialize" },
  { method: "initialize", params: { ...initialize("2025-06-18").params, _meta: { progressToken: 1 }, surplus: 1 } },
];

export async function handshakes(server: WireServer): Promise<readonly Exchange[]> {
  const first = HANDSHAKES.map((request) =>
    scene(
      server,
      {
        name: `handshake ${JSON.stringify(request.params) ?? ""}`.slice(0, 150),
        sent: request,
        kinds: TRANSPORTS.map((transport) => ({ transport, revision: "plain" })),
      },
      async (client) => [
        ...told(client, await client.exchange(textOf(request))),
        ...told(client, await client.exchange(textOf({ method: "ping" }))),
      ],
    ),
  );
  const again = scene(
    server,
    { name: "a second handshake", sent: initialize("2025-06-18"), kinds: WITH_HANDSHAKE },
    async (client) => told(client, await client.exchange(textOf(initialize("2025-06-18")))),
  );
  const early = scene(
    server,
    {
      name: "a call before notifications/initialized",
      sent: call("whoami"),
      kinds: LEGACY.map((revision) => ({ transport: "stdio", revision: `${revision} early` })),
    },
    async (client, { revision }) => {
      await client.exchange(textOf(initialize(revision.slice(0, MODERN.length))));
      const answer = await client.exchange(textOf(call("whoami")));
      await client.exchange(INITIALIZED);
      return answer.messages;
    },
  );
  return Promise.all([...first, again, early]);
}

const ANSWERS: Readonly<Record<string, Answering>> = {
  "accepts and helps": HELPFUL,
  declines: () => ({ result: { action: "decline" } }),
  cancels: () => ({ result: { action: "cancel" } }),
  "accepts without content": () => ({ result: { action: "accept" } }),
  "answers nonsense": () => ({ result: { nonsense: 1 } }),
  "answers with an error": () => ({ error: { code: -1, message: "no" } }),
};

const ASKING: readonly CorpusRequest[] = [
  call("ask", { topic: "t" }),
  call("ask_twice", { topic: "t" }),
  call("test_sampling", { prompt: "p" }),
  call("test_elicitation", { message: "m" }),
  call("test_elicitation_sep1034_defaults"),
  call("test_elicitation_sep1330_enums"),
  call("test_input_required_result_list_roots"),
  call("test_input_required_result_multiple_inputs"),
  call("test_streaming_elicitation", {}, { _meta: { progressToken: "p" } }),
  { method: "prompts/get", params: { name: "test_input_required_result_prompt" } },
  { method: "prompts/get", params: { name: "ask_twice", arguments: { topic: "t" } } },
];

/** Questions as requests of the server. */
export async function questions(server: WireServer): Promise<readonly Exchange[]> {
  const helped = Object.entries(ANSWERS).flatMap(([who, answering]) =>
    ASKING.map((request) =>
      scene(
        server,
        { name: `a client that ${who}: ${JSON.stringify(request.params)}`, sent: request, kinds: WITH_HANDSHAKE },
        async (client) => {
          client.answering = answering;
          return told(client, await client.exchange(textOf(request)));
        },
      ),
    ),
  );
  return Promise.all(helped);
}

/** A call is cancelled while its question is open, and the client leaves while one is. */
export async function openQuestions(server: WireServer): Promise<readonly Exchange[]> {
  const cancelled = await scene(
    server,
    { name: "cancelled while a question is open", sent: call("ask"), kinds: WITH_HANDSHAKE },
    async (client) => {
      const params = { requestId: "cancel me", reason: "enough" };
      const cancel = JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params });
      const text = JSON.stringify({ jsonrpc: "2.0", id: "cancel me", ...call("ask") });
      client.answering = () => {
        if (client instanceof HttpClient) void client.send(cancel);
        return undefined;
      };
      if (client instanceof HttpClient) return told(client, await client.exchange(text));
      await client.send(text);
      const question = await client.until((messages) => messages.length > 0);
      const after = await client.exchange(cancel);
      return [...question, ...after.messages].map(withoutNumbers);
    },
  );
  const left = await scene(
    server,
    {
      name: "stdin ends while a question is open",
      sent: call("ask"),
      kinds: LEGACY.map((revision) => ({ transport: "stdio", revision })),
    },
    async (client) => {
      client.answering = () => undefined;
      await client.send(JSON.stringify({ jsonrpc: "2.0", id: "left", ...call("ask") }));
      const before = await client.until((all) => all.length > 0);
      await client.close();
      const after = await client.until((all) => all.some(({ id }) => id === "left"));
      return [...before, ...after].map(withoutNumbers);
    },
  );
  return [cancelled, left];
}

/** Questions are numbered over all connections of a process. */
function withoutNumbers(message: Message): unknown {
  if (!isObject(message)) return message;
  const { params } = message;
  const numbered = isObject(params) && typeof params["requestId"] === "number";
  return {
    ...message,
    ...(typeof message["id"] === "number" && { id: "<question>" }),
    ...(numbered && { params: { ...params, requestId: "<question>" } }),
  };
}

const ROUNDS: readonly CorpusRequest[] = [
  ...ASKING,
  call("test_input_required_result_elicitation"),
  call("test_input_required_result_sampling"),
  call("test_input_required_result_request_state"),
  call("test_input_required_result_multi_round"),
  call("test_input_required_result_capabilities"),
];

/** Questions as results: the request goes again with its answers, until the answer is whole. */
export async function rounds(server: WireServer): Promise<readonly Exchange[]> {
  const complete = ROUNDS.map((request) =>
    scene(
      server,
      { name: `in rounds: ${JSON.stringify(request.params)}`, sent: request, kinds: WITHOUT_HANDSHAKE },
      async (client, kind) => {
        const heard: unknown[] = [];
        let next = request;
        for (let round = 0; round < 4; round++) {
          const answer = await exchange(client, kind, next, { capabilities: EVERYTHING });
          heard.push(...told(client, answer));
          const result = answer.messages.at(-1) as Message;
          if (result?.result?.resultType !== "input_required") break;
          next = withAnswers(request, result.result);
        }
        return heard;
      },
    ),
  );
  const incapable = ASKING.map((request) =>
    scene(
      server,
      {
        name: `to a client that can do nothing: ${JSON.stringify(request.params)}`,
        sent: request,
        kinds: WITHOUT_HANDSHAKE,
      },
      async (client, kind) => told(client, await exchange(client, kind, request)),
    ),
  );
  return Promise.all([...complete, ...incapable, ...spoiltRounds(server)]);
}

function spoiltRounds(server: WireServer): readonly Promise<Exchange>[] {
  const request = call("ask", { topic: "t" });
  const spoil: Readonly<Record<string, (again: CorpusRequest) => readonly CorpusRequest[]>> = {
    "a state that was changed": ({ params, ...rest }) => [
      { ...rest, params: { ...params, requestState: `${String(params?.["requestState"])}x` } },
    ],
    "a state that is used twice": (again) => [again, again],
    "a state of another request": ({ params }) => [
      call("ask", { topic: "u" }, { ...params, name: "ask", arguments: { topic: "u" } }),
    ],
    "answers without a state": ({ params, ...rest }) => [
      { ...rest, params: Object.fromEntries(Object.entries(params ?? {}).filter(([key]) => key !== "requestState")) },
    ],
    "no answers": ({ params, ...rest }) => [{ ...rest, params: { ...params, inputResponses: {} } }],
    "an answer of the wrong shape": ({ params, ...rest }) => [
      { ...rest, params: { ...params, inputResponses: { name: { nonsense: 1 } } } },
    ],
    "answers that are no object": ({ params, ...rest }) => [{ ...rest, params: { ...params, inputResponses: [] } }],
    "a state that is no text": ({ params, ...rest }) => [{ ...rest, params: { ...params, requestState: 7 } }],
  };
  return Object.entries(spoil).map(([name, change]) =>
    scene(server, { name, sent: request, kinds: WITHOUT_HANDSHAKE }, async (client, kind) => {
      const first = await exchange(client, kind, request, { capabilities: EVERYTHING });
      const again = withAnswers(request, (first.messages.at(-1) as Message).result);
      const heard: unknown[] = [];
      for (const next of change(again))
        heard.push(...told(client, await exchange(client, kind, next, { capabilities: EVERYTHING })));
      return heard;
    }),
  );
}

function withAnswers({ method, params }: CorpusRequest, { inputRequests, requestState }: Message): CorpusRequest {
  const inputResponses = Object.fromEntries(
    Object.entries(inputRequests).map(([key, question]) => {
      const answer = HELPFUL(question);
      return [key, answer !== undefined && "result" in answer ? answer.result : {}];
    }),
  );
  return { method, params: { ...params, inputResponses, requestState } };
}

/** Calls whose answers are fetched. */
export async function tasks(server: WireServer): Promise<readonly Exchange[]> {
  const started = [
    call("slow_compute", { seconds: 0, label: "l" }),
    call("failing_job"),
    call("protocol_error_job"),
    call("confirm_delete", { filename: "f" }),
    call("multi_input"),
    call("asking_job"),
    call("typed", { text: "a", count: 1 }),
  ].map((request) =>
    scene(
      server,
      { name: `as a task: ${JSON.stringify(request.params)}`, sent: request, kinds: WITHOUT_HANDSHAKE },
      async (client, kind) => {
        const first = await exchange(client, kind, request, { capabilities: EVERYTHING });
        const id = (first.messages.at(-1) as Message)?.result?.taskId;
        return id === undefined
          ? told(client, first)
          : [...told(client, first), ...(await followTask(client, kind, id))];
      },
    ),
  );
  const cancelled = scene(
    server,
    { name: "a task that is cancelled", sent: call("job", { key: "k" }), kinds: WITHOUT_HANDSHAKE },
    async (client, kind) => {
      const ask = (request: CorpusRequest): Promise<Heard> =>
        exchange(client, kind, request, { capabilities: EVERYTHING });
      const first = await ask(call("job", { key: "wire" }));
      const params = { taskId: (first.messages.at(-1) as Message).result.taskId };
      const heard = [...told(client, first)];
      for (const method of ["tasks/get", "tasks/update", "tasks/cancel", "tasks/get", "tasks/cancel", "tasks/update"])
        heard.push(...told(client, await ask({ method, params: { ...params, inputResponses: {} } })));
      return heard;
    },
  );
  return Promise.all([...started, cancelled]);
}

async function followTask(client: WireClient, kind: ConnectionKind, taskId: string): Promise<readonly unknown[]> {
  const get = (): Promise<Heard> =>
    exchange(client, kind, { method: "tasks/get", params: { taskId } }, { capabilities: EVERYTHING });
  const statusOf = ({ messages }: Heard): string => (messages.at(-1) as Message)?.result?.status;
  const heard: unknown[] = [];
  let found = await eventually(get, (answer) => statusOf(answer) !== "working");
  while (statusOf(found) === "input_required") {
    heard.push(...told(client, found));
    const { inputRequests } = (found.messages.at(-1) as Message).result;
    const inputResponses = Object.fromEntries(
      Object.keys(inputRequests).map((key) => [key, { action: "accept", content: { confirm: true, name: "Ada" } }]),
    );
    const update = { method: "tasks/update", params: { taskId, inputResponses } };
    heard.push(...told(client, await exchange(client, kind, update, { capabilities: EVERYTHING })));
    found = await eventually(get, (answer) => statusOf(answer) !== "working");
  }
  return [...heard, ...told(client, found)];
}

const LISTS = ["tools", "prompts", "resources"] as const;

/** What a connection hears of changes, up to a change of the tools that ends the scene. */
export async function changes(server: WireServer): Promise<readonly Exchange[]> {
  const { changes: source } = server.mcp;
  const change = (): void => {
    for (const uri of ["note://01", "note://02"]) source.resourceUpdated(uri);
    for (const list of LISTS) source.listChanged(list);
  };
  const isToolsChange = ({ method }: Message): boolean => method === "notifications/tools/list_changed";
  const heard = await scene(
    server,
    {
      name: "changes, subscribed and unsubscribed",
      sent: ["subscribe to note://01", "changes", "unsubscribe", "changes"],
      kinds: WITH_HANDSHAKE,
    },
    async (client) => {
      if (client instanceof HttpClient) await client.listen();
      const all: unknown[] = [];
      for (const method of ["resources/subscribe", "resources/unsubscribe"]) {
        await client.exchange(textOf({ method, params: { uri: "note://01" } }));
        change();
        source.listChanged("tools");
        all.push(...(await client.until((messages) => messages.filter(isToolsChange).length === 2)));
      }
      return all;
    },
  );
  return [heard];
}

const LISTENS: Readonly<Record<string, unknown>> = {
  "one list": { toolsListChanged: true },
  "every list": { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true },
  "one resource": { resourceSubscriptions: ["note://01"], toolsListChanged: true },
  everything: {
    toolsListChanged: true,
    promptsListChanged: true,
    resourcesListChanged: true,
    resourceSubscriptions: ["note://01", "note://02"],
  },
  "what is refused": { toolsListChanged: true, promptsListChanged: false },
  "an unknown kind": { toolsListChanged: true, nothingChanged: true },
};

/** Subscriptions of the revision without handshake. The change of the tools comes last and ends the scene. */
export async function listening(server: WireServer): Promise<readonly Exchange[]> {
  const exchanges: Exchange[] = [];
  const { changes: source } = server.mcp;
  for (const [name, notifications] of Object.entries(LISTENS)) {
    const request = withEnvelope({ method: "subscriptions/listen", params: { notifications } });
    const change = (): void => {
      for (const uri of ["note://01", "note://02", "note://03"]) source.resourceUpdated(uri);
      for (const list of ["prompts", "resources", "tools"] as const) source.listChanged(list);
    };
    const isLast = ({ method }: Message): boolean => method === "notifications/tools/list_changed";
    const overHttp = await listenOverHttp(server, request, { change, isLast });
    const stdio = new StdioClient(server, `stdio ${MODERN}`);
    await stdio.send(JSON.stringify({ jsonrpc: "2.0", id: "sub", ...request }));
    const opened = await stdio.until((messages) => messages.length > 0);
    change();
    const messages = [...opened, ...(await stdio.until((all) => all.some(isLast)))];
    const params = { requestId: "sub" };
    await stdio.exchange(JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params }));
    change();
    const after = await exchange(stdio, { revision: MODERN }, { method: "ping" });
    await stdio.close();
    exchanges.push({
      name: `listens to ${name}`,
      sent: request,
      heard: [
        { on: `http ${MODERN}`, messages: overHttp },
        { on: stdio.name, messages: [...messages, ...after.messages] },
      ],
    });
  }
  return [...exchanges, ...(await badListens(server))];
}

async function listenOverHttp(
  { origin }: WireServer,
  request: CorpusRequest,
  { change, isLast }: { readonly change: () => void; readonly isLast: (message: Message) => boolean },
): Promise<readonly unknown[]> {
  const hangUp = new AbortController();
  const response = await openResponse(`${origin}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", ...mirrorHeaders(request) },
    body: JSON.stringify({ jsonrpc: "2.0", id: "sub", ...request }),
    signal: hangUp.signal,
  });
  const heard: unknown[] = [{ status: response.statusCode, type: response.headers["content-type"] }];
  const stream = new EventReader(response);
  heard.push(JSON.parse((await stream.next())?.data ?? "null"));
  change();
  for (let message: Message = {}; !isLast(message);) {
    message = JSON.parse((await stream.next())?.data ?? "null");
    heard.push(message);
  }
  hangUp.abort();
  return heard;
}

/** Requests to listen with one wrong value: the first thing that is said to them. */
async function badListens(server: WireServer): Promise<readonly Exchange[]> {
  const good = { notifications: { toolsListChanged: true, resourceSubscriptions: ["note://01"] } };
  const bent = pathsOf(good).flatMap((path) =>
    [undefined, ...WRONG_VALUES].map((wrong, index) => ({
      name: `listens with ${path.join(".")} = ${index}`,
      request: { method: "subscriptions/listen", params: replaced(good, path, wrong) as Record<string, unknown> },
    })),
  );
  const hidden = {
    name: "listens to what is hidden",
    request: {
      method: "subscriptions/listen",
      params: { notifications: { resourceSubscriptions: ["skill://support/tone"] } },
    },
  };
  const exchanges: Exchange[] = [];
  for (const { name, request } of [...bent, hidden]) {
    const whole = withEnvelope(request);
    const text = JSON.stringify({ jsonrpc: "2.0", id: "sub", ...whole });
    const stdio = new StdioClient(server, `stdio ${MODERN}`);
    await stdio.send(text);
    const heard = await stdio.until((messages) => messages.length > 0);
    await stdio.close();
    exchanges.push({
      name,
      sent: request,
      heard: [await peek(server, text, mirrorHeaders(whole)), { on: stdio.name, messages: heard }],
    });
  }
  return exchanges;
}

/** The status and the first thing that is said: what listens has no end of its own. */
async function peek({ origin }: WireServer, body: string, headers: Record<string, string>): Promise<Heard> {
  const hangUp = new AbortController();
  const response = await openResponse(`${origin}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body,
    signal: hangUp.signal,
  });
  const isStream = response.headers["content-type"] === "text/event-stream";
  const text = isStream ? ((await new EventReader(response).next())?.data ?? "null") : await textOfStream(response);
  hangUp.abort();
  const messages = text === "" ? [] : [JSON.parse(text)];
  return { on: `http ${MODERN} ${response.statusCode} ${isStream ? "stream" : "json"}`, messages };
}
