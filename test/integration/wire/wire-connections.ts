import { INITIALIZE, mirrorHeaders, withEnvelope } from "../../escape/corpus.ts";
import type { CorpusRequest } from "../../escape/corpus.ts";
import { HttpClient, postJson, SseClient, StdioClient, type WireClient } from "./wire-clients.ts";
import type { Exchange } from "./recording.ts";
import type { Named } from "./wire-requests.ts";
import type { WireServer } from "./wire-server.ts";

export const MODERN = "2026-07-28";
export const LEGACY: readonly string[] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/** `plain` is a client that sends requests with neither handshake nor revision. */
export const REVISIONS: readonly string[] = ["plain", ...LEGACY, MODERN];
export const TRANSPORTS = ["http", "stdio", "sse"] as const;

export type TransportName = (typeof TRANSPORTS)[number];

export interface ConnectionKind {
  readonly transport: TransportName;
  readonly revision: string;
}

export const EVERY_CONNECTION: readonly ConnectionKind[] = REVISIONS.flatMap((revision) =>
  TRANSPORTS.map((transport) => ({ transport, revision })),
);

/** Each revision once, and each transport: fields are read the same way on all connections of one revision. */
export const DIFFERENT_READERS: readonly ConnectionKind[] = EVERY_CONNECTION.filter(
  ({ transport, revision }) =>
    transport === "http" ||
    (transport === "sse" ? revision === "2024-11-05" : revision === "plain" || revision === MODERN),
);

const BOTH = "application/json, text/event-stream";
const ACCEPTS = [BOTH, "application/json", "*/*", ""];

/** A connection on which the handshake of its revision is over. */
export async function connect(server: WireServer, { transport, revision }: ConnectionKind): Promise<WireClient> {
  const name = `${transport} ${revision}`;
  if (transport === "http") return connectHttp(server, revision, name);
  const client = transport === "stdio" ? new StdioClient(server, name) : await SseClient.open(server, name);
  if (LEGACY.includes(revision)) {
    await client.exchange(textOf(initialize(revision)));
    await client.send(INITIALIZED);
  }
  return client;
}

export const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}';

export function initialize(revision: string): CorpusRequest {
  return { ...INITIALIZE, params: { ...INITIALIZE.params, protocolVersion: revision } };
}

async function connectHttp(server: WireServer, revision: string, name: string): Promise<HttpClient> {
  if (!LEGACY.includes(revision)) return new HttpClient(server, name);
  const response = await postJson(`${server.origin}/mcp`, textOf(initialize(revision)), { accept: BOTH });
  response.resume();
  const sessionId = String(response.headers["mcp-session-id"]);
  const client = new HttpClient(server, name, {
    accept: BOTH,
    "mcp-session-id": sessionId,
    "mcp-protocol-version": revision,
  });
  await client.send(INITIALIZED);
  return client;
}

let lastId = 0;

export function textOf(request: CorpusRequest): string {
  return JSON.stringify({ jsonrpc: "2.0", id: `r${++lastId}`, ...request });
}

export interface SendingOptions {
  /** What a client of the revision without handshake declares. */
  readonly capabilities?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request as a client of the connection's revision does. */
export function exchange(
  client: WireClient,
  { revision }: Pick<ConnectionKind, "revision">,
  request: CorpusRequest,
  { capabilities = {}, headers = {} }: SendingOptions = {},
): ReturnType<WireClient["exchange"]> {
  const isModern = revision === MODERN;
  const whole = isModern ? withEnvelope(request, capabilities) : request;
  const isNotification = request.method.startsWith("notifications/");
  const text = isNotification ? JSON.stringify({ jsonrpc: "2.0", ...whole }) : textOf(whole);
  return client.exchange(text, { headers: { ...(isModern ? mirrorHeaders(whole) : {}), ...headers } });
}

/** Sends each request on a connection of every kind, one after the other on each. */
export async function onEveryConnection(
  server: WireServer,
  requests: readonly Named[],
  options: SendingOptions & { readonly kinds?: readonly ConnectionKind[] } = {},
): Promise<readonly Exchange[]> {
  const { kinds = EVERY_CONNECTION } = options;
  const heard = await Promise.all(
    kinds.map(async (kind) => {
      const client = await connect(server, kind);
      const answers = [];
      for (const [index, { request }] of requests.entries()) {
        // A client without handshake says with each request what it accepts.
        const accept = kind.revision === MODERN ? BOTH : (ACCEPTS[index % ACCEPTS.length] ?? "");
        answers.push(
          typeof request === "string"
            ? await client.exchange(request, { headers: kind.revision === MODERN ? MODERN_HEADERS : { accept } })
            : await exchange(client, kind, request, { ...options, headers: { accept } }),
        );
      }
      await client.close();
      return answers;
    }),
  );
  return requests.map(({ name, request }, index) => ({
    name,
    sent: request,
    heard: heard.flatMap((answers) => answers[index] ?? []),
  }));
}

const MODERN_HEADERS = { accept: BOTH, "mcp-protocol-version": MODERN };
