import { MODERN } from "./http-client.ts";

export interface CorpusRequest {
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

const call = (name: string, args?: unknown, rest: object = {}): CorpusRequest => ({
  method: "tools/call",
  params: { name, ...(args !== undefined && { arguments: args }), ...rest },
});

const TYPED = { text: "a", count: 1 };

/** Calls that a tool answers with a result, in many shapes. */
export const GOOD_CALLS: readonly CorpusRequest[] = [
  call("echo", { text: "hello" }),
  call("echo", { text: "" }),
  call("echo", { text: '\u0000\u2028\u2029\u{1F989}"\\/\b\f\n\r\t' }),
  call("echo", { text: "x".repeat(30_000) }),
  call("echo", { text: "a", extra: 1 }),
  call("whoami"),
  call("whoami", {}),
  call("typed", TYPED),
  call("typed", {
    ...TYPED,
    ratio: 1e-7,
    flag: true,
    color: "red",
    list: ["a", "b"],
    nested: { deep: { value: "v" } },
  }),
  call("typed", { ...TYPED, ratio: 1e300, anything: { constructor: 1, toString: null, a: [[[{}]]] } }),
  call("list"),
  call("media"),
  call("waits_a_turn"),
  call("talks"),
  call("headed", { region: "eu" }),
  ...["text", "number", "true", "null", "nothing", "object", "empty"].map((kind) => call("values", { kind })),
  call("whoami", {}, { _meta: { "test/extra": 1 } }),
  call("whoami", {}, { _meta: {} }),
  call("talks", {}, { _meta: { progressToken: "p" } }),
  call("talks", {}, { _meta: { progressToken: 7 } }),
  call("whoami", {}, { surplus: true }),
];

/** Calls that end in an error of some kind. */
export const BAD_CALLS: readonly CorpusRequest[] = [
  ...["error", "text", "owl", "internal", "result"].map((how) => call("fails", { how })),
  call("times_out"),
  call("wrong_output"),
  call("nobody"),
  call(""),
  call("__proto__"),
  call("constructor"),
  call("x".repeat(5000)),
  call("echo"),
  call("echo", {}),
  call("echo", { text: 1 }),
  call("echo", { text: null }),
  call("whoami", { surplus: 1 }),
  call("typed", { ...TYPED, count: 1.5 }),
  call("typed", { ...TYPED, count: 11 }),
  call("typed", { ...TYPED, text: "" }),
  call("typed", { ...TYPED, color: "blue" }),
  call("typed", { ...TYPED, list: ["a", 1, null, {}] }),
  call("typed", { ...TYPED, nested: { deep: {} } }),
  call("typed", { text: 1, count: "1", ratio: "x", flag: 0, color: 1, list: {}, nested: [], anything: [] }),
  call("headed", {}),
  call("job", { key: "never started" }),
  call("ask", {}),
  call("echo", null),
  call("echo", []),
  call("echo", "text"),
  call("echo", 1),
  call("echo", { text: "a" }, { _meta: null }),
  call("echo", { text: "a" }, { _meta: [] }),
  call("echo", { text: "a" }, { _meta: "x" }),
  call("echo", { text: "a" }, { _meta: { progressToken: {} } }),
  call("echo", { text: "a" }, { _meta: { progressToken: null } }),
  call("echo", { text: "a" }, { task: {} }),
  call("echo", { text: "a" }, { task: { ttl: 1 } }),
  call("echo", { text: "a" }, { inputResponses: {} }),
  call("echo", { text: "a" }, { requestState: "x" }),
  { method: "tools/call" },
  { method: "tools/call", params: {} },
  { method: "tools/call", params: { name: 1 } },
  { method: "tools/call", params: { name: null, arguments: {} } },
  { method: "tools/call", params: { name: ["echo"] } },
  { method: "tools/call", params: { arguments: { text: "a" } } },
  { method: "tools/Call", params: { name: "echo" } },
];

/** One good request for every method that ends by itself. */
export const METHODS: readonly CorpusRequest[] = [
  { method: "ping" },
  { method: "tools/list" },
  { method: "tools/list", params: { cursor: "x" } },
  call("typed", { ...TYPED, list: ["a"], nested: { deep: { value: "v" } } }),
  { method: "resources/list" },
  { method: "resources/templates/list", params: {} },
  { method: "resources/read", params: { uri: "note://01" } },
  { method: "resources/read", params: { uri: "item://one" } },
  { method: "resources/read", params: { uri: "nothing://" } },
  { method: "resources/read", params: { uri: "note://01", surplus: 1 } },
  { method: "resources/read", params: { uri: "note://01", _meta: { "io.owlclaw/read": { range: "bytes=0-1" } } } },
  { method: "resources/read", params: { uri: "note://01", _meta: { "io.owlclaw/read": 7 } } },
  { method: "resources/read", params: { uri: 1 } },
  { method: "resources/read", params: {} },
  { method: "resources/subscribe", params: { uri: "note://01" } },
  { method: "resources/unsubscribe", params: { uri: "note://01" } },
  { method: "prompts/list" },
  { method: "prompts/get", params: { name: "greeting", arguments: { name: "Ada", tone: "kind" } } },
  { method: "prompts/get", params: { name: "nobody" } },
  {
    method: "completion/complete",
    params: { ref: { type: "ref/prompt", name: "greeting" }, argument: { name: "name", value: "A" } },
  },
  {
    method: "completion/complete",
    params: {
      ref: { type: "ref/resource", uri: "item://{id}" },
      argument: { name: "id", value: "" },
      context: { arguments: {} },
    },
  },
  { method: "logging/setLevel", params: { level: "error" } },
  { method: "mcp.capabilities", params: {} },
  { method: "tasks/get", params: { taskId: "x" } },
  { method: "tasks/update", params: { taskId: "x", inputResponses: { a: { action: "accept" } } } },
  { method: "tasks/cancel", params: { taskId: "x" } },
  { method: "server/discover", params: {} },
  { method: "roots/list" },
  { method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } },
  { method: "nothing/here", params: {} },
  { method: "__proto__" },
  { method: "toString" },
];

export const NOTIFICATIONS: readonly CorpusRequest[] = [
  { method: "notifications/initialized" },
  { method: "notifications/cancelled", params: { requestId: "never" } },
  { method: "notifications/progress", params: { progressToken: "x", progress: 1 } },
  { method: "notifications/roots/list_changed" },
  { method: "notifications/unknown", params: { a: 1 } },
];

export const INITIALIZE: CorpusRequest = {
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: { roots: { listChanged: true }, sampling: {}, elicitation: {} },
    clientInfo: { name: "test", version: "1" },
  },
};

/** The envelope that each request of the revision without handshake carries. */
export function withEnvelope(request: CorpusRequest, capabilities: object = {}): CorpusRequest {
  const { method, params = {} } = request;
  if (!isPlain(params)) return request;
  const { _meta: meta = {} } = params;
  if (!isPlain(meta)) return request;
  const envelope = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": capabilities,
  };
  return { method, params: { ...params, _meta: { ...meta, ...envelope } } };
}

/** The headers that mirror the body in that revision. */
export function mirrorHeaders({ method, params = {} }: CorpusRequest): Record<string, string> {
  const name = isPlain(params) ? (params["name"] ?? params["uri"] ?? params["taskId"]) : undefined;
  return {
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": MODERN,
    ...(isHeaderSafe(method) && { "mcp-method": method }),
    ...(isHeaderSafe(name) && { "mcp-name": name }),
  };
}

function isHeaderSafe(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]{1,200}$/.test(value);
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What stands where it should not: each replaces each field of each good request. */
export const WRONG_VALUES: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e308,
  2 ** 53,
  "",
  "x",
  "\u0000",
  "\uD800",
  "x".repeat(10_000),
  "2026-07-28",
  [],
  [null],
  {},
  { "": {} },
  JSON.parse('{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}}}'),
  nested(150),
];

function nested(depth: number): unknown {
  return depth === 0 ? 1 : { a: nested(depth - 1) };
}

export type Path = readonly (string | number)[];

/** The way to each field of a value, the value itself left out. */
export function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => {
    const here = [...path, Array.isArray(value) ? Number(key) : key];
    return [here, ...pathsOf(child, here)];
  });
}

/** A copy with one field replaced, or taken out. */
export function replaced(value: unknown, [key, ...rest]: Path, wrong: unknown): unknown {
  if (key === undefined) return wrong;
  if (Array.isArray(value)) return value.map((child, index) => (index === key ? replaced(child, rest, wrong) : child));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, child]) => {
    if (name !== key) return [[name, child]];
    return rest.length === 0 && wrong === undefined ? [] : [[name, replaced(child, rest, wrong)]];
  });
  return Object.fromEntries(entries);
}

const read = (uri: unknown, wish?: unknown): CorpusRequest => ({
  method: "resources/read",
  params: { uri, ...(wish !== undefined && { _meta: { "io.owlclaw/read": wish } }) },
});

/** Reads of the skills of a shop: whole and in part, again, by all of their names, and of what is not there or not open. */
export const SKILL_READS: readonly CorpusRequest[] = [
  read("skill://ecommerce/refund"),
  read("skill://ecommerce/refund"),
  read("skill://ecommerce/refund/SKILL.md"),
  read("skill://ecommerce/refund", {}),
  read("skill://ecommerce/refund", { range: "bytes=0-9" }),
  read("skill://ecommerce/refund", { range: "bytes=-5" }),
  read("skill://ecommerce/refund", { range: "bytes=99999-" }),
  read("skill://ecommerce/refund", { range: "lines=1-2" }),
  read("skill://ecommerce/refund", { ifNoneMatch: "*" }),
  read("skill://ecommerce/refund", { ifNoneMatch: "sha256:00" }),
  read("skill://ecommerce/refund", { ifNoneMatch: 1 }),
  read("skill://ecommerce/refund", { surplus: true }),
  read("skill://ecommerce/refund/references/limits.md"),
  read("skill://ecommerce/refund/references/limits.md", { range: "bytes=10-12" }),
  read("skill://ecommerce/refund/assets/logo.png"),
  read("skill://ecommerce/refund/nothing.md"),
  read("skill://ecommerce/refund/../../escape"),
  read("skill://support/broken"),
  read("skill://support/tone"),
  read("skill://"),
  read("SKILL://ecommerce/refund"),
  read(""),
  read("x".repeat(5000)),
];
