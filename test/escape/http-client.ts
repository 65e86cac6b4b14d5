import { once } from "node:events";
import { type IncomingHttpHeaders, type IncomingMessage, request as httpRequest } from "node:http";
import { connect, type Socket } from "node:net";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON; nothing when it is none. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every shape
  readonly json: any;
}

export interface SendOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer;
  readonly signal?: AbortSignal;
}

/** One request as given, with no header of a library's own beside Host and the length. */
export async function send(url: string, options: SendOptions = {}): Promise<Answer> {
  const response = await openResponse(url, options);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  return { status: response.statusCode ?? 0, headers: response.headers, text, json: toJson(text) };
}

/** The answer as soon as its headers are there. */
export async function openResponse(url: string, options: SendOptions = {}): Promise<IncomingMessage> {
  const { method = "GET", headers = {}, body, signal } = options;
  const request = httpRequest(url, {
    method,
    agent: false,
    headers: { ...(body !== undefined && { "content-length": String(Buffer.byteLength(body)) }), ...headers },
    ...(signal !== undefined && { signal }),
  });
  request.end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return response;
}

let lastId = 0;

export interface RpcOptions {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly id?: string | number;
  readonly signal?: AbortSignal;
}

/** `POST /mcp` as a plain client. */
export function rpc(origin: string, method: string, params: object = {}, options: RpcOptions = {}): Promise<Answer> {
  return post(origin, { jsonrpc: "2.0", id: options.id ?? ++lastId, method, params }, options);
}

export function post(
  origin: string,
  message: unknown,
  { token, headers = {}, signal }: RpcOptions = {},
): Promise<Answer> {
  return send(`${origin}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", ...bearer(token), ...headers },
    body: JSON.stringify(message),
    ...(signal !== undefined && { signal }),
  });
}

export async function callTool(
  origin: string,
  name: string,
  args: object = {},
  options: RpcOptions = {},
): Promise<Answer> {
  return rpc(origin, "tools/call", { name, arguments: args }, options);
}

export const MODERN = "2026-07-28";

/** The body and headers of a request in the revision without handshake. */
export function modernRequest(method: string, params: Record<string, unknown> = {}, capabilities: object = {}) {
  const name = params["name"] ?? params["uri"] ?? params["taskId"];
  return {
    params: {
      ...params,
      _meta: {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
      },
    },
    headers: {
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": MODERN,
      "mcp-method": method,
      ...(typeof name === "string" && { "mcp-name": name }),
    },
  };
}

export function modern(
  origin: string,
  method: string,
  params: Record<string, unknown> = {},
  { capabilities = {}, ...options }: RpcOptions & { readonly capabilities?: object } = {},
): Promise<Answer> {
  const request = modernRequest(method, params, capabilities);
  return rpc(origin, method, request.params, { ...options, headers: { ...request.headers, ...options.headers } });
}

export interface SessionOptions extends RpcOptions {
  readonly version?: string;
  readonly capabilities?: object;
}

/** Shakes hands and gives the session's headers. */
export async function openSession(origin: string, options: SessionOptions = {}): Promise<Record<string, string>> {
  const { version = "2025-11-25", capabilities = {}, token } = options;
  const params = { protocolVersion: version, capabilities, clientInfo: { name: "test", version: "1" } };
  const both = "application/json, text/event-stream";
  const answer = await rpc(origin, "initialize", params, { ...options, headers: { accept: both } });
  const sessionId = answer.headers["mcp-session-id"];
  if (typeof sessionId !== "string") throw new Error(`no session: ${answer.status} ${answer.text}`);
  const headers = { accept: both, "mcp-session-id": sessionId, "mcp-protocol-version": version };
  await post(
    origin,
    { jsonrpc: "2.0", method: "notifications/initialized" },
    { headers, ...(token !== undefined && { token }) },
  );
  return headers;
}

export function bearer(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

export interface StreamEvent {
  readonly event: string;
  readonly id: string | undefined;
  readonly data: string;
}

/** Reads server-sent events off an open response, one at a time. */
export class EventReader {
  readonly #events: AsyncGenerator<StreamEvent>;

  constructor(readable: AsyncIterable<Buffer>) {
    this.#events = eventsOf(readable);
  }

  /** The next event with data; nothing when the stream has ended. */
  async next(): Promise<StreamEvent | undefined> {
    const { value, done } = await this.#events.next();
    return done === true ? undefined : value;
  }

  async find(wanted: (event: StreamEvent) => boolean): Promise<StreamEvent> {
    for (;;) {
      const event = await this.next();
      if (event === undefined) throw new Error("the stream ended before the event came");
      if (wanted(event)) return event;
    }
  }
}

async function* eventsOf(readable: AsyncIterable<Buffer>): AsyncGenerator<StreamEvent> {
  let text = "";
  for await (const chunk of readable) {
    text += chunk.toString("utf8");
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      const fields = new Map(
        text
          .slice(0, end)
          .split("\n")
          .map((line) => [line.split(":", 1)[0] ?? "", line.replace(/^[^:]*: ?/, "")] as const),
      );
      text = text.slice(end + 2);
      const data = fields.get("data");
      if (data !== undefined) yield { event: fields.get("event") ?? "message", id: fields.get("id"), data };
    }
  }
}

/** A TCP connection that sends exactly the given bytes, and everything it was answered. */
export class RawConnection {
  readonly socket: Socket;
  readonly closed: Promise<string>;
  #received = "";

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding("latin1").on("data", (chunk: string) => (this.#received += chunk));
    this.closed = new Promise((resolve) => {
      socket.on("error", () => undefined).once("close", () => resolve(this.#received));
    });
  }

  static async open(port: number, host = "127.0.0.1"): Promise<RawConnection> {
    const socket = connect(port, host);
    await once(socket, "connect");
    return new RawConnection(socket);
  }

  get received(): string {
    return this.#received;
  }

  write(text: string | Buffer): this {
    this.socket.write(text);
    return this;
  }

  /** Resolves when what came satisfies the test; says what came when the connection ends before. */
  async until(isEnough: (received: string) => boolean): Promise<string> {
    while (!isEnough(this.#received)) {
      if (this.socket.destroyed) throw new Error(`the connection ended with: ${JSON.stringify(this.#received)}`);
      await Promise.race([once(this.socket, "data"), this.closed]);
    }
    return this.#received;
  }

  destroy(): void {
    this.socket.destroy();
  }
}

export function statuses(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((match) => Number(match[1]));
}

/** Asks again until the answer is as wanted; the test's own time-out is the limit. */
export async function eventually<T>(ask: () => Promise<T> | T, isWanted: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await ask();
    if (isWanted(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Empty bodies and event streams are no JSON.
    return undefined;
  }
}
