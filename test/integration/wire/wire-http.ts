import { type CorpusRequest, mirrorHeaders, withEnvelope } from "../../escape/corpus.ts";
import { type Answer, send } from "../../escape/http-client.ts";
import type { Exchange } from "./recording.ts";
import { initialize, textOf } from "./wire-connections.ts";
import type { WireServer } from "./wire-server.ts";

interface Shot {
  readonly name: string;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const BOTH = "application/json, text/event-stream";
const JSON_TYPE = { "content-type": "application/json" };
const PING = textOf({ method: "ping" });
const ECHO: CorpusRequest = { method: "tools/call", params: { name: "echo", arguments: { text: "a" } } };

/** What HTTP adds to the messages: methods, headers, statuses. `SESSION` stands for the id of a session. */
const SHOTS: readonly Shot[] = [
  { name: "plain ping", headers: JSON_TYPE, body: PING },
  { name: "plain call", headers: JSON_TYPE, body: textOf(ECHO) },
  { name: "plain call that reports progress", headers: { ...JSON_TYPE, accept: BOTH }, body: progress() },
  { name: "a form", headers: { "content-type": "text/plain" }, body: PING },
  { name: "no type", body: PING },
  { name: "an unknown revision", headers: { ...JSON_TYPE, "mcp-protocol-version": "2099-01-01" }, body: PING },
  { name: "no revision", headers: { ...JSON_TYPE, "mcp-protocol-version": "x" }, body: PING },
  { name: "handshake", headers: { ...JSON_TYPE, accept: BOTH }, body: textOf(initialize("2025-11-25")) },
  { name: "handshake that fails", headers: JSON_TYPE, body: textOf(initialize("x")) },
  { name: "unknown session", headers: { ...JSON_TYPE, "mcp-session-id": "nobody" }, body: PING },
  { name: "session", headers: { ...JSON_TYPE, "mcp-session-id": "SESSION" }, body: PING },
  { name: "session, call", headers: { ...JSON_TYPE, "mcp-session-id": "SESSION" }, body: textOf(ECHO) },
  {
    name: "session, call that reports progress",
    headers: { ...JSON_TYPE, accept: BOTH, "mcp-session-id": "SESSION" },
    body: progress(),
  },
  {
    name: "session, unknown revision",
    headers: { ...JSON_TYPE, "mcp-session-id": "SESSION", "mcp-protocol-version": "2099-01-01" },
    body: PING,
  },
  { name: "session, no JSON", headers: { ...JSON_TYPE, "mcp-session-id": "SESSION" }, body: "{" },
  { name: "session, no message", headers: { ...JSON_TYPE, "mcp-session-id": "SESSION" }, body: "1" },
  {
    name: "session, notification",
    headers: { ...JSON_TYPE, "mcp-session-id": "SESSION" },
    body: '{"jsonrpc":"2.0","method":"notifications/initialized"}',
  },
  { name: "stream of no session", method: "GET", headers: { accept: "text/event-stream", "mcp-session-id": "nobody" } },
  {
    name: "stream that is unknown",
    method: "GET",
    headers: { accept: "text/event-stream", "mcp-session-id": "SESSION", "last-event-id": "x" },
  },
  { name: "end of no session", method: "DELETE", headers: { "mcp-session-id": "nobody" } },
  { name: "end without a session", method: "DELETE" },
  { name: "end", method: "DELETE", headers: { "mcp-session-id": "SESSION" } },
  { name: "after the end", headers: { ...JSON_TYPE, "mcp-session-id": "SESSION" }, body: PING },
  { name: "another method", method: "PUT", headers: JSON_TYPE, body: PING },
  { name: "no such stream", path: "/mcp/messages?sessionId=nobody", headers: JSON_TYPE, body: PING },
  { name: "no stream named", path: "/mcp/messages", headers: JSON_TYPE, body: PING },
  { name: "another path", path: "/nothing", headers: JSON_TYPE, body: PING },
  ...modernShots(),
];

function progress(): string {
  return textOf({ method: "tools/call", params: { name: "talks", arguments: {}, _meta: { progressToken: "p" } } });
}

/** In the revision without handshake the headers mirror the body; here they do not. */
function modernShots(): readonly Shot[] {
  const request = withEnvelope(ECHO);
  const good = mirrorHeaders(request);
  const without = (left: string): Record<string, string> =>
    Object.fromEntries(Object.entries(good).filter(([name]) => name !== left));
  const headers: Record<string, Record<string, string>> = {
    "good headers": good,
    "another method": { ...good, "mcp-method": "tools/list" },
    "another name": { ...good, "mcp-name": "whoami" },
    "a name in other letters": { ...good, "mcp-name": "ECHO" },
    "a name in base64": { ...good, "mcp-name": "=?base64?ZWNobw==?=" },
    "a name in bad base64": { ...good, "mcp-name": "=?base64?%%?=" },
    "no name": without("mcp-name"),
    "no method": without("mcp-method"),
    "no version": without("mcp-protocol-version"),
    "an unknown version": { ...good, "mcp-protocol-version": "2099-01-01" },
    "an older version": { ...good, "mcp-protocol-version": "2025-06-18" },
    "a surplus header": { ...good, "mcp-param-region": "eu" },
    "plain JSON only": { ...good, accept: "application/json" },
    "no accept": without("accept"),
    "a session": { ...good, "mcp-session-id": "nobody" },
  };
  const region = withEnvelope({ method: "tools/call", params: { name: "headed", arguments: { region: "eu" } } });
  const regions = [undefined, "eu", "us", "=?base64?ZXU=?=", "=?base64?%%?="].map((value) => ({
    name: `modern, region ${value}`,
    headers: { ...JSON_TYPE, ...mirrorHeaders(region), ...(value !== undefined && { "mcp-param-region": value }) },
    body: textOf(region),
  }));
  const asked = (name: string, request: CorpusRequest, headers: Readonly<Record<string, string>> = {}): Shot => ({
    name: `modern, ${name}`,
    headers: { ...JSON_TYPE, ...mirrorHeaders(request), ...headers },
    body: textOf(request),
  });
  const other = { _meta: { "io.modelcontextprotocol/protocolVersion": "2099-01-01" } };
  return [
    ...Object.entries(headers).map(([name, own]) => ({
      name: `modern, ${name}`,
      headers: { ...JSON_TYPE, ...own },
      body: textOf(request),
    })),
    ...regions,
    asked(
      "progress",
      withEnvelope({ method: "tools/call", params: { name: "talks", arguments: {}, _meta: { progressToken: 1 } } }),
    ),
    asked("unknown revision in the body", { ...ECHO, params: { ...ECHO.params, ...other } }),
    asked("no envelope", ECHO),
    asked("initialize", withEnvelope(initialize("2026-07-28"))),
    asked("unknown method", withEnvelope({ method: "nothing/here", params: {} })),
    asked("method of older revisions", withEnvelope({ method: "logging/setLevel", params: { level: "error" } })),
    asked("discover", withEnvelope({ method: "server/discover", params: {} })),
    {
      name: "modern, notification",
      headers: { ...JSON_TYPE, ...mirrorHeaders({ method: "notifications/cancelled" }) },
      body: JSON.stringify({
        jsonrpc: "2.0",
        ...withEnvelope({ method: "notifications/cancelled", params: { requestId: 1 } }),
      }),
    },
    {
      name: "modern, notification without an envelope",
      headers: { ...JSON_TYPE, ...mirrorHeaders({ method: "notifications/cancelled" }) },
      body: JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } }),
    },
    { name: "modern, batch", headers: { ...JSON_TYPE, ...good }, body: `[${textOf(request)}]` },
    { name: "modern, no JSON", headers: { ...JSON_TYPE, ...good }, body: "{" },
    { name: "modern, no message", headers: { ...JSON_TYPE, ...good }, body: "1" },
  ];
}

export async function overHttp({ origin }: WireServer): Promise<readonly Exchange[]> {
  const opened = await send(`${origin}/mcp`, {
    method: "POST",
    headers: JSON_TYPE,
    body: textOf(initialize("2025-11-25")),
  });
  const session = String(opened.headers["mcp-session-id"]);
  const exchanges: Exchange[] = [];
  for (const { name, method = "POST", path = "/mcp", headers = {}, body } of SHOTS) {
    const own = headers["mcp-session-id"] === "SESSION" ? { ...headers, "mcp-session-id": session } : headers;
    const answer = await send(`${origin}${path}`, { method, headers: own, ...(body !== undefined && { body }) });
    const sent = {
      method,
      path,
      headers,
      ...(body !== undefined && { body: body.replace(/"id":"r\d+"/, '"id":"<id>"') }),
    };
    exchanges.push({ name, sent, heard: [{ on: "http", messages: describe(answer, session) }] });
  }
  return exchanges;
}

const IGNORED = new Set(["date", "connection", "keep-alive", "content-length", "transfer-encoding"]);

function describe({ status, headers, text, json }: Answer, session: string): readonly unknown[] {
  const kept = Object.entries(headers)
    .filter(([name]) => !IGNORED.has(name))
    .map(([name, value]) => [name, withoutChance(name, String(value), session)])
    .sort(([a = ""], [b = ""]) => (a < b ? -1 : 1));
  const body = json === undefined ? eventsOf(text) : [withoutId(json)];
  return [{ status, headers: Object.fromEntries(kept) }, ...body];
}

function withoutChance(name: string, value: string, session: string): string {
  if (value === session) return "SESSION";
  if (name === "ratelimit") return value.replace(/\d+/g, "<number>");
  return name === "x-trace-id" || name === "mcp-session-id" ? "<text>" : value;
}

/** Lines of a stream; the ids of its events are random. */
function eventsOf(text: string): readonly unknown[] {
  return text.split("\n").flatMap((line) => {
    if (line === "") return [];
    if (line.startsWith("id: ")) return ["id: <id>"];
    return line.startsWith("data: {") ? ["data:", withoutId(JSON.parse(line.slice("data: ".length)))] : [line];
  });
}

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every shape
function withoutId(message: any): unknown {
  return typeof message?.id === "string" && message.id.startsWith("r") ? { ...message, id: "<id>" } : message;
}
