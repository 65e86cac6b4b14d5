import { CLIENT_INFO, envelope, type JsonRpcAnswer, modernHeaders } from "./wire-messages.ts";

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body when it is JSON, or the last message of an event stream. */
  readonly body: JsonRpcAnswer;
  /** All messages of an event stream. */
  readonly messages: readonly JsonRpcAnswer[];
}

export const BOTH = "application/json, text/event-stream";

/** Sends a body as it stands. */
export async function post(
  url: string,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
): Promise<HttpAnswer> {
  const response = await fetch(url, {
    method: "POST",
    body,
    headers: { "content-type": "application/json", ...headers },
  });
  return readAnswer(response);
}

export function postJson(url: string, body: unknown, headers: Record<string, string> = {}): Promise<HttpAnswer> {
  return post(url, JSON.stringify(body), headers);
}

let lastId = 0;

/** A request with no session and no version, as the seeds' own curl examples send it. */
export function plain(url: string, method: string, params: Record<string, unknown> = {}): Promise<HttpAnswer> {
  return postJson(url, { jsonrpc: "2.0", id: ++lastId, method, params });
}

export function plainCall(url: string, name: string, args: Record<string, unknown> = {}): Promise<HttpAnswer> {
  return plain(url, "tools/call", { name, arguments: args });
}

export interface ModernOptions {
  readonly capabilities?: Record<string, unknown>;
  readonly meta?: Record<string, unknown>;
  readonly headers?: Record<string, string>;
}

export function modern(
  url: string,
  method: string,
  params: Record<string, unknown> = {},
  { capabilities = {}, meta = {}, headers = {} }: ModernOptions = {},
): Promise<HttpAnswer> {
  return postJson(
    url,
    { jsonrpc: "2.0", id: ++lastId, method, params: envelope(params, capabilities, meta) },
    { accept: BOTH, ...modernHeaders(method, params), ...headers },
  );
}

async function readAnswer(response: Response): Promise<HttpAnswer> {
  const text = await response.text();
  const { status, headers } = response;
  if (headers.get("content-type")?.startsWith("text/event-stream") === true) {
    const messages = parseEvents(text).flatMap(({ data }) => (data === "" ? [] : [JSON.parse(data) as JsonRpcAnswer]));
    return { status, headers, text, messages, body: messages.at(-1) ?? { jsonrpc: "" } };
  }
  const body = (text === "" ? { jsonrpc: "" } : JSON.parse(text)) as JsonRpcAnswer;
  return { status, headers, text, body, messages: [body] };
}

export interface SseEvent {
  readonly event: string;
  readonly id: string | undefined;
  readonly data: string;
}

export function parseEvents(text: string): SseEvent[] {
  return text
    .split("\n\n")
    .filter((block) => /^(data|event|id):/m.test(block))
    .map((block) => {
      const field = (name: string): string | undefined => new RegExp(`^${name}: ?(.*)$`, "m").exec(block)?.[1];
      return { event: field("event") ?? "message", id: field("id"), data: field("data") ?? "" };
    });
}

const open = new Set<AbortController>();

/** Hangs up on every stream that is still open; for the end of a test. */
export function closeStreams(): void {
  for (const controller of open) controller.abort();
  open.clear();
}

/** An event stream that stays open, read as it comes. */
export class EventReader {
  readonly response: Response;
  text = "";
  isEnded = false;
  readonly #controller: AbortController;
  readonly #watchers = new Set<() => void>();

  constructor(response: Response, controller: AbortController) {
    this.response = response;
    this.#controller = controller;
    void this.#read();
  }

  static async open(
    url: string,
    init: Omit<RequestInit, "headers"> & { readonly headers?: Record<string, string> } = {},
  ): Promise<EventReader> {
    const controller = new AbortController();
    open.add(controller);
    const headers = { accept: "text/event-stream", ...init.headers };
    return new EventReader(await fetch(url, { ...init, headers, signal: controller.signal }), controller);
  }

  get events(): SseEvent[] {
    return parseEvents(this.text.slice(0, this.text.lastIndexOf("\n\n") + 2));
  }

  get messages(): JsonRpcAnswer[] {
    return this.events.flatMap(({ event, data }) =>
      event === "message" && data !== "" ? ([JSON.parse(data)].flat() as JsonRpcAnswer[]) : [],
    );
  }

  async event(matches: (event: SseEvent) => boolean): Promise<SseEvent> {
    return this.#find(() => this.events.find(matches));
  }

  async message(matches: (message: JsonRpcAnswer) => boolean): Promise<JsonRpcAnswer> {
    return this.#find(() => this.messages.find(matches));
  }

  async comment(): Promise<string> {
    return this.#find(() => /^:.*$/m.exec(this.text)?.[0]);
  }

  async ended(): Promise<void> {
    await this.#find(() => (this.isEnded ? true : undefined), { evenAtEnd: true });
  }

  close(): void {
    this.#controller.abort();
  }

  async #find<T>(look: () => T | undefined, { evenAtEnd = false } = {}): Promise<T> {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      if (this.isEnded && !evenAtEnd) throw new Error(`the stream ended:\n${this.text}`);
      await new Promise<void>((resolve) => this.#watchers.add(resolve));
    }
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of this.response.body ?? []) {
        this.text += decoder.decode(chunk as Uint8Array, { stream: true });
        this.#wake();
      }
    } catch {
      // A stream that was aborted ends like any other.
    }
    this.isEnded = true;
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#watchers) wake();
    this.#watchers.clear();
  }
}

/** A session on the Streamable HTTP transport, without a client library. */
export class HttpSession {
  readonly url: string;
  readonly id: string;
  readonly version: string;

  private constructor(url: string, id: string, version: string) {
    this.url = url;
    this.id = id;
    this.version = version;
  }

  static async open(
    url: string,
    { version = "2025-11-25", capabilities = {} }: { version?: string; capabilities?: Record<string, unknown> } = {},
  ): Promise<HttpSession> {
    const params = { protocolVersion: version, capabilities, clientInfo: CLIENT_INFO };
    const answer = await postJson(url, { jsonrpc: "2.0", id: 0, method: "initialize", params }, { accept: BOTH });
    const id = answer.headers.get("mcp-session-id");
    if (id === null) throw new Error(`no session: ${answer.status} ${answer.text}`);
    const session = new HttpSession(url, id, version);
    await session.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    return session;
  }

  /** The same session, as its client reaches it at another address. */
  at(url: string): HttpSession {
    return new HttpSession(url, this.id, this.version);
  }

  get headers(): Record<string, string> {
    return { accept: BOTH, "mcp-session-id": this.id, "mcp-protocol-version": this.version };
  }

  send(message: unknown, headers: Record<string, string> = {}): Promise<HttpAnswer> {
    return postJson(this.url, message, { ...this.headers, ...headers });
  }

  request(method: string, params: Record<string, unknown> = {}): Promise<HttpAnswer> {
    return this.send({ jsonrpc: "2.0", id: ++lastId, method, params });
  }

  call(name: string, args: Record<string, unknown> = {}): Promise<HttpAnswer> {
    return this.request("tools/call", { name, arguments: args });
  }

  /** The stream for what belongs to no request, or the rest of a lost one. */
  listen(lastEventId?: string): Promise<EventReader> {
    const resume = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
    return EventReader.open(this.url, { headers: { ...this.headers, accept: "text/event-stream", ...resume } });
  }

  /** Posts a request and leaves its stream open. */
  open(message: unknown): Promise<EventReader> {
    const headers = { ...this.headers, "content-type": "application/json" };
    return EventReader.open(this.url, { method: "POST", headers, body: JSON.stringify(message) });
  }

  delete(): Promise<Response> {
    return fetch(this.url, { method: "DELETE", headers: this.headers });
  }
}

/** The 2024-11-05 transport without a client library: one stream from the server, POSTs to it. */
export class SseLine {
  readonly stream: EventReader;
  readonly endpoint: string;

  private constructor(stream: EventReader, endpoint: string) {
    this.stream = stream;
    this.endpoint = endpoint;
  }

  static async open(origin: string): Promise<SseLine> {
    const stream = await EventReader.open(`${origin}/mcp/sse`);
    const { data } = await stream.event(({ event }) => event === "endpoint");
    return new SseLine(stream, new URL(data, origin).href);
  }

  async initialize(protocolVersion = "2024-11-05"): Promise<JsonRpcAnswer> {
    const answer = await this.request("initialize", { protocolVersion, capabilities: {}, clientInfo: CLIENT_INFO });
    await this.post({ jsonrpc: "2.0", method: "notifications/initialized" });
    return answer;
  }

  post(message: unknown): Promise<Response> {
    return fetch(this.endpoint, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(message),
    });
  }

  async request(method: string, params: Record<string, unknown> = {}): Promise<JsonRpcAnswer> {
    const id = ++lastId;
    await this.post({ jsonrpc: "2.0", id, method, params });
    return this.stream.message((message) => message.id === id && message.method === undefined);
  }
}
