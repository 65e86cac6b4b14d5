import { once } from "node:events";
import { Agent, type IncomingMessage, request as httpRequest } from "node:http";
import { PassThrough } from "node:stream";
import { StdioTransport } from "../../../src/transport/stdio/stdio-transport.ts";
import { EventReader, openResponse } from "../../escape/http-client.ts";
import { dueFor } from "../../escape/json-rpc-oracle.ts";
import { readLines } from "../../escape/read-lines.ts";
import type { Heard } from "./recording.ts";
import { isObject } from "./recording.ts";
import type { WireServer } from "./wire-server.ts";

/** A message as it came off the wire. */
// oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every shape
export type Message = any;

/** What a client says to a question of the server. */
export type Answering = (question: Message) => { readonly result: unknown } | { readonly error: unknown } | undefined;

export interface SendOptions {
  readonly headers?: Readonly<Record<string, string>>;
}

/** One connection of a client. Requests on it are sent one after the other, unless a test says otherwise. */
export interface WireClient {
  /** Transport and revision, as they stand in the recording. */
  readonly name: string;
  answering: Answering;
  /** Sends a text and resolves with all that came until it was answered, or with what came before the next answer if it needs none. */
  exchange(text: string, options?: SendOptions): Promise<Heard>;
  /** Sends a text without waiting for an answer. */
  send(text: string): Promise<void>;
  /** Resolves with everything that came on the connection itself, once there is enough of it. */
  until(isEnough: (messages: readonly Message[]) => boolean): Promise<readonly Message[]>;
  close(): Promise<void>;
}

/** Accepts what a form asks, answers for a model, and has one root. */
export const HELPFUL: Answering = ({ method }) => {
  if (method === "elicitation/create") return { result: { action: "accept", content: { name: "Ada" } } };
  if (method === "sampling/createMessage")
    return { result: { role: "assistant", model: "m", content: { type: "text", text: "Paris" } } };
  return method === "roots/list" ? { result: { roots: [{ uri: "file:///a", name: "a" }] } } : undefined;
};

let fences = 0;

/** A connection on which all messages come on one stream: stdio, and HTTP+SSE. */
abstract class StreamClient implements WireClient {
  readonly name: string;
  answering: Answering = HELPFUL;
  readonly #heard: Message[] = [];
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(name: string) {
    this.name = name;
  }

  abstract send(text: string): Promise<void>;
  abstract close(): Promise<void>;

  async exchange(text: string): Promise<Heard> {
    const refusal = await this.post(text);
    if (refusal !== undefined) return refusal;
    if (isSilent(text)) {
      const fence = `fence-${++fences}`;
      await this.send(JSON.stringify({ jsonrpc: "2.0", id: fence, method: "ping" }));
      const messages = await this.#take((message) => isObject(message) && message["id"] === fence);
      return { on: this.name, messages: messages.slice(0, -1) };
    }
    return { on: this.name, messages: idless(await this.#take(isAnswer), idsOf(text)) };
  }

  async until(isEnough: (messages: readonly Message[]) => boolean): Promise<readonly Message[]> {
    for (;;) {
      const messages = this.#heard.slice(this.#taken);
      if (isEnough(messages)) {
        this.#taken = this.#heard.length;
        return messages;
      }
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  /** Sends; gives back the answer where it does not come on the stream. */
  protected async post(text: string): Promise<Heard | undefined> {
    await this.send(text);
    return undefined;
  }

  protected hear(message: Message): void {
    this.#heard.push(message);
    const answer = isQuestion(message) ? this.answering(message) : undefined;
    if (answer !== undefined) void this.send(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...answer }));
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** Everything that was not taken yet, up to the first wanted message. */
  async #take(isWanted: (message: Message) => boolean): Promise<readonly Message[]> {
    for (;;) {
      const end = this.#heard.findIndex((message, index) => index >= this.#taken && isWanted(message));
      if (end >= 0) {
        const messages = this.#heard.slice(this.#taken, end + 1);
        this.#taken = end + 1;
        return messages;
      }
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }
}

export class StdioClient extends StreamClient {
  readonly #input = new PassThrough();
  readonly #transport: StdioTransport;

  constructor({ mcp }: WireServer, name: string) {
    super(name);
    const output = new PassThrough();
    readLines(output, (line) => this.hear(JSON.parse(line)));
    this.#transport = new StdioTransport({
      mcp,
      clientId: "stdio",
      maxLineBytes: 1_000_000,
      input: this.#input,
      output,
    });
  }

  async send(text: string): Promise<void> {
    this.#input.write(`${text}\n`);
  }

  /** Closes stdin, as a client does that has enough. */
  async close(deadlineMs = 0): Promise<void> {
    this.#input.end();
    await this.#transport.ended;
    await this.#transport.close(deadlineMs);
  }
}

export class SseClient extends StreamClient {
  readonly #hangUp = new AbortController();
  #url = "";

  static async open({ origin }: WireServer, name: string): Promise<SseClient> {
    const client = new SseClient(name);
    const stream = new EventReader(await openResponse(`${origin}/mcp/sse`, { signal: client.#hangUp.signal }));
    const { data } = await stream.find(({ event }) => event === "endpoint");
    client.#url = `${origin}${data}`;
    void client.#read(stream);
    return client;
  }

  async send(text: string): Promise<void> {
    await postJson(this.#url, text, {});
  }

  async close(): Promise<void> {
    this.#hangUp.abort();
  }

  protected override async post(text: string): Promise<Heard | undefined> {
    const response = await postJson(this.#url, text, {});
    const body = await textOf(response);
    if (response.statusCode === 202) return undefined;
    const messages = body === "" ? [] : idless([JSON.parse(body)], idsOf(text));
    return { on: `${this.name} ${response.statusCode}`, messages };
  }

  async #read(stream: EventReader): Promise<void> {
    try {
      for (let event = await stream.next(); event !== undefined; event = await stream.next())
        this.hear(JSON.parse(event.data));
    } catch (error) {
      // The client itself has hung up.
      if (!this.#hangUp.signal.aborted) throw error;
    }
  }
}

export class HttpClient implements WireClient {
  readonly name: string;
  answering: Answering = HELPFUL;
  readonly headers: Record<string, string>;
  readonly #url: string;
  /** Its own: a connection that other clients have left alone for long may be closed just when it is used. */
  readonly #agent = new Agent({ keepAlive: true });
  readonly #heard: Message[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #hangUp = new AbortController();

  constructor({ origin }: WireServer, name: string, headers: Record<string, string> = {}) {
    this.name = name;
    this.headers = headers;
    this.#url = `${origin}/mcp`;
  }

  async exchange(text: string, { headers = {} }: SendOptions = {}): Promise<Heard> {
    const response = await this.post(text, headers);
    const { messages, type } = await this.#read(response);
    return { on: `${this.name} ${response.statusCode} ${type}`, messages: idless(messages, idsOf(text)) };
  }

  /** Sends, and gives back the answer when its headers are there. */
  async post(text: string, headers: Readonly<Record<string, string>> = {}): Promise<IncomingMessage> {
    return postJson(this.#url, text, { ...this.headers, ...headers }, this.#agent);
  }

  async send(text: string): Promise<void> {
    const response = await this.post(text);
    response.resume();
  }

  /** Opens the stream of the session, which `until` reads. */
  async listen(): Promise<void> {
    const { signal } = this.#hangUp;
    const response = await openResponse(this.#url, {
      headers: { ...this.headers, accept: "text/event-stream" },
      signal,
    });
    void this.#follow(new EventReader(response));
  }

  async until(isEnough: (messages: readonly Message[]) => boolean): Promise<readonly Message[]> {
    while (!isEnough(this.#heard)) await new Promise<void>((resolve) => this.#waiting.add(resolve));
    return this.#heard.splice(0);
  }

  async close(): Promise<void> {
    this.#hangUp.abort();
    this.#agent.destroy();
  }

  async #follow(stream: EventReader): Promise<void> {
    try {
      for (let event = await stream.next(); event !== undefined; event = await stream.next()) this.#hear(event.data);
    } catch (error) {
      // The client itself has hung up.
      if (!this.#hangUp.signal.aborted) throw error;
    }
  }

  #hear(data: string): void {
    if (data !== "") this.#heard.push(JSON.parse(data));
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  async #read(response: IncomingMessage): Promise<{ readonly messages: readonly Message[]; readonly type: string }> {
    const type = response.headers["content-type"];
    if (type !== "text/event-stream") {
      const text = await textOf(response);
      return text === "" ? { messages: [], type: "empty" } : { messages: [JSON.parse(text)], type: "json" };
    }
    const messages: Message[] = [];
    const stream = new EventReader(response);
    for (let event = await stream.next(); event !== undefined; event = await stream.next()) {
      if (event.data === "") continue;
      const message: Message = JSON.parse(event.data);
      messages.push(message);
      const answer = isQuestion(message) ? this.answering(message) : undefined;
      if (answer !== undefined) await this.send(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...answer }));
    }
    return { messages, type: "stream" };
  }
}

export async function postJson(
  url: string,
  body: string,
  headers: Readonly<Record<string, string>>,
  agent: Agent | false = false,
): Promise<IncomingMessage> {
  const all = Object.entries({ "content-type": "application/json", ...headers }).filter(([, value]) => value !== "");
  const request = httpRequest(url, { agent, method: "POST", headers: Object.fromEntries(all) });
  request.end(body);
  const [response] = await once(request, "response");
  return response;
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
  return text;
}

function isSilent(text: string): boolean {
  const due = dueFor(Buffer.from(text));
  return due.kind === "silence" || (due.kind === "batch" && due.items.every(({ kind }) => kind === "silence"));
}

function isAnswer(message: Message): boolean {
  return Array.isArray(message) || (isObject(message) && !("method" in message));
}

function isQuestion(message: Message): boolean {
  return isObject(message) && "method" in message && "id" in message;
}

/** The ids that a text sends, for the answers to be recognised by. */
function idsOf(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text);
    return [value].flat().map((message: unknown) => (isObject(message) ? message["id"] : undefined));
  } catch {
    // A text that is no JSON sends no id.
    return [];
  }
}

/** Ids of requests are recorded as `<id>`, those of questions as `<question>`. An id of nothing that was sent stays. */
function idless(messages: readonly Message[], sent: readonly unknown[]): readonly Message[] {
  const named = (message: Message): Message => {
    if (Array.isArray(message)) return message.map(named);
    if (!isObject(message) || !("id" in message)) return message;
    if (isQuestion(message)) return { ...message, id: "<question>" };
    return sent.includes(message["id"]) && message["id"] !== null ? { ...message, id: "<id>" } : message;
  };
  return messages.map(named);
}
