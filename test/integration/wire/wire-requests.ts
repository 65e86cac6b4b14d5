import {
  BAD_CALLS,
  type CorpusRequest,
  GOOD_CALLS,
  METHODS,
  NOTIFICATIONS,
  pathsOf,
  replaced,
  SKILL_READS,
  WRONG_VALUES,
} from "../../escape/corpus.ts";

/** A request, or a text that is sent as it stands. */
export interface Named {
  readonly name: string;
  readonly request: CorpusRequest | string;
}

const TYPED_CALL: CorpusRequest = {
  method: "tools/call",
  params: { name: "typed", arguments: { text: "a", count: 1, list: ["b"] } },
};
const SKILL_READ: CorpusRequest = {
  method: "resources/read",
  params: { uri: "skill://ecommerce/refund", _meta: { "io.owlclaw/read": { range: "bytes=0-1" } } },
};

const cursor = (list: string, last: string): string => Buffer.from(JSON.stringify([list, last])).toString("base64url");

const PAGES: readonly CorpusRequest[] = [
  { method: "resources/list", params: { cursor: cursor("resources", "note://48") } },
  { method: "resources/list", params: { cursor: cursor("resources", "zzz") } },
  { method: "resources/list", params: { cursor: cursor("tools", "echo") } },
  { method: "resources/list", params: { _meta: { "io.owlclaw/filter": { category: "ecommerce" } } } },
  { method: "resources/list", params: { _meta: { "io.owlclaw/filter": { tag: ["refund"] } } } },
  { method: "resources/list", params: { _meta: { "io.owlclaw/filter": 1 } } },
  { method: "resources/templates/list", params: { cursor: cursor("templates", "item://{id}") } },
  { method: "tools/list", params: { cursor: cursor("tools", "talks") } },
  { method: "tools/list", params: {} },
  { method: "prompts/list", params: { cursor: cursor("prompts", "greeting") } },
  { method: "prompts/list", params: { cursor: "x" } },
];

const PROMPTS: readonly CorpusRequest[] = [
  { method: "prompts/get", params: { name: "test_simple_prompt" } },
  {
    method: "prompts/get",
    params: { name: "test_prompt_with_arguments", arguments: { arg1: "hello", arg2: "world" } },
  },
  { method: "prompts/get", params: { name: "test_prompt_with_arguments", arguments: { arg1: "hello" } } },
  {
    method: "prompts/get",
    params: { name: "test_prompt_with_arguments", arguments: { arg1: "a", arg2: "b", c: "d" } },
  },
  {
    method: "prompts/get",
    params: { name: "test_prompt_with_embedded_resource", arguments: { resourceUri: "a://b" } },
  },
  { method: "prompts/get", params: { name: "test_prompt_with_image" } },
  { method: "prompts/get", params: { name: "greeting", arguments: {} } },
  { method: "prompts/get", params: { name: "constructor" } },
];

const RESOURCES: readonly CorpusRequest[] = [
  { method: "resources/read", params: { uri: "test://static-text" } },
  { method: "resources/read", params: { uri: "test://static-binary" } },
  { method: "resources/read", params: { uri: "test://template/7/data" } },
  { method: "resources/subscribe", params: { uri: "skill://support/tone" } },
  { method: "resources/subscribe", params: { uri: "nothing://here" } },
  { method: "resources/unsubscribe", params: { uri: "nothing://here" } },
];

const SKILLS: readonly CorpusRequest[] = [
  { method: "skills/list" },
  { method: "skills/list", params: { cursor: "x" } },
  { method: "skills/get", params: { uri: "skill://ecommerce/refund/SKILL.md" } },
  { method: "skills/get", params: { uri: "skill://ecommerce/refund" } },
  { method: "skills/get", params: { uri: "skill://support/tone/SKILL.md" } },
  { method: "resources/directory/read", params: { uri: "skill://ecommerce/refund" } },
  { method: "resources/directory/read", params: { uri: "skill://ecommerce/refund/references" } },
  { method: "resources/directory/read", params: { uri: "skill://nobody/there" } },
];

const COMPLETIONS: readonly CorpusRequest[] = [
  {
    method: "completion/complete",
    params: {
      ref: { type: "ref/prompt", name: "test_prompt_with_arguments" },
      argument: { name: "arg1", value: "par" },
    },
  },
  {
    method: "completion/complete",
    params: { ref: { type: "ref/prompt", name: "nobody" }, argument: { name: "arg1", value: "" } },
  },
  {
    method: "completion/complete",
    params: { ref: { type: "ref/prompt", name: "greeting" }, argument: { name: "toString", value: "" } },
  },
  {
    method: "completion/complete",
    params: { ref: { type: "ref/resource", uri: "item://none/of/them" }, argument: { name: "id", value: "o" } },
  },
];

/**
 * Tools of the conformance suite that end by themselves and say the same each time. Without `json_schema_2020_12_tool`: arguments for
 * such a schema are checked within a time limit, which a machine without a free processor exceeds.
 */
const TOOLS = [
  "test_simple_text",
  "test_image_content",
  "test_audio_content",
  "test_embedded_resource",
  "test_multiple_content_types",
  "test_error_handling",
  "test_logging_tool",
  "test_tool_with_logging",
  "test_tool_with_progress",
  "test_missing_capability",
  "slow_compute",
  "confirm_delete",
  "test_tool_with_task",
];
const TOOL_ARGUMENTS = { seconds: 0, label: "l", filename: "f" };

export const CALLS: readonly Named[] = named([
  ...GOOD_CALLS,
  ...BAD_CALLS,
  ...TOOLS.flatMap((name) =>
    [{}, TOOL_ARGUMENTS].map((args) => ({ method: "tools/call", params: { name, arguments: args } })),
  ),
  ...["p", 7].map((progressToken) => ({
    method: "tools/call",
    params: { name: "test_tool_with_progress", arguments: {}, _meta: { progressToken } },
  })),
]);

export const OTHER_METHODS: readonly Named[] = named([
  ...METHODS,
  ...PAGES,
  ...PROMPTS,
  ...RESOURCES,
  ...SKILL_READS,
  ...SKILLS,
  ...COMPLETIONS,
]);

/** Values of each type, for the methods whose fields are few. */
const FEW_WRONG_VALUES: readonly unknown[] = [undefined, null, true, 1.5, "x", [], {}];

const BENT_METHODS: readonly CorpusRequest[] = [
  { method: "tools/list", params: { cursor: "c" } },
  { method: "resources/list", params: { cursor: "c", _meta: { progressToken: 1 } } },
  { method: "resources/templates/list", params: { cursor: "c" } },
  { method: "resources/subscribe", params: { uri: "note://01" } },
  { method: "resources/unsubscribe", params: { uri: "note://01" } },
  { method: "prompts/list", params: { cursor: "c" } },
  { method: "prompts/get", params: { name: "greeting", arguments: { name: "Ada" } } },
  {
    method: "completion/complete",
    params: {
      ref: { type: "ref/prompt", name: "greeting" },
      argument: { name: "name", value: "A" },
      context: { arguments: { tone: "kind" } },
    },
  },
  { method: "logging/setLevel", params: { level: "error" } },
  { method: "tasks/get", params: { taskId: "x" } },
  { method: "tasks/update", params: { taskId: "x", inputResponses: { a: { action: "accept" } } } },
  { method: "tasks/cancel", params: { taskId: "x" } },
  { method: "skills/list", params: { cursor: "c" } },
  { method: "skills/get", params: { uri: "skill://a" } },
  { method: "resources/directory/read", params: { uri: "skill://a", cursor: "c" } },
  { method: "mcp.capabilities", params: { a: 1 } },
  { method: "server/discover", params: { a: 1 } },
  { method: "ping", params: { _meta: { progressToken: 1 } } },
  {
    method: "tools/call",
    params: { name: "whoami", arguments: {}, inputResponses: { a: { action: "accept" } }, requestState: "s" },
  },
];

export const BENT: readonly Named[] = [
  ...[TYPED_CALL, SKILL_READ].flatMap((good) => bent(good, [undefined, ...WRONG_VALUES])),
  ...BENT_METHODS.flatMap((good) => bent(good, FEW_WRONG_VALUES)),
];

const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency", "loud", 7, null];
const LEVEL_KEY = "io.modelcontextprotocol/logLevel";

/** What clients are told of a call's log: by the level of the connection, or of the request. */
export const LOGGING: readonly Named[] = named([
  call("talks", { "test/extra": 1 }),
  ...LEVELS.flatMap((level) => [
    { method: "logging/setLevel", params: { level } },
    call("talks"),
    call("test_tool_with_logging", { progressToken: "p" }),
    call("talks", { [LEVEL_KEY]: level }),
    call("talks", { [LEVEL_KEY]: level, progressToken: 0 }),
  ]),
]);

function call(name: string, meta?: object): CorpusRequest {
  return { method: "tools/call", params: { name, arguments: {}, ...(meta !== undefined && { _meta: meta }) } };
}

function bent(good: CorpusRequest, values: readonly unknown[]): Named[] {
  return pathsOf(good)
    .filter((path) => path[0] !== "method")
    .flatMap((path) =>
      values.map((wrong, index) => ({
        name: `${good.method} with ${path.join(".")} = ${index}: ${(JSON.stringify(wrong) ?? "left out").slice(0, 40)}`,
        request: replaced(good, path, wrong) as CorpusRequest,
      })),
    );
}

const CALL = { method: "tools/call", params: { name: "echo", arguments: { text: "a" } } };
const text = (message: object): string => JSON.stringify({ jsonrpc: "2.0", ...message });

export const TEXTS: readonly Named[] = [
  ...["", "id", 0, -1, 9_007_199_254_740_991, "\u0000\u{1F989}", "x".repeat(2000), "__proto__"].map((id) =>
    raw(`id ${JSON.stringify(id).slice(0, 20)}`, text({ id, ...CALL })),
  ),
  ...[null, 1.5, 2 ** 53, true, {}, []].map((id) => raw(`no id: ${JSON.stringify(id)}`, text({ id, ...CALL }))),
  ...[
    "{",
    "[]",
    "null",
    "1",
    '"text"',
    "{}",
    '{"jsonrpc":"1.0","id":1}',
    '{"jsonrpc":"1.0","id":1,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1}',
    '{"jsonrpc":"2.0","id":1,"method":""}',
    '{"jsonrpc":"2.0","id":1,"method":7}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":null}',
    '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
    '{"jsonrpc":"2.0","id":77,"result":{}}',
    '{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"no"}}',
    '{"jsonrpc":"2.0","error":{"code":1,"message":"no"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":1e999}}}',
  ].map((body) => raw(body.slice(0, 100), body)),
  raw("a batch of two", `[${text({ id: 1, ...CALL })},${text({ id: 2, method: "ping" })}]`),
  raw("a batch with a bad one", `[${text({ id: 1, ...CALL })},1,{"jsonrpc":"2.0","id":3}]`),
  raw("a batch of notifications", `[${text({ method: "notifications/initialized" })}]`),
  raw(
    "a batch with a method of a session",
    `[${text({ id: 1, method: "logging/setLevel", params: { level: "error" } })}]`,
  ),
  raw(
    "nested too deeply",
    `{"jsonrpc":"2.0","id":1,"method":"ping","params":${'{"a":'.repeat(200)}1${"}".repeat(200)}}`,
  ),
  ...NOTIFICATIONS.map((request) => ({ name: request.method, request })),
];

function raw(name: string, request: string): Named {
  return { name, request };
}

function named(requests: readonly CorpusRequest[]): readonly Named[] {
  return requests.map((request, index) => ({
    name: `${index} ${request.method} ${JSON.stringify(request.params)?.slice(0, 80) ?? ""}`.trim(),
    request,
  }));
}
