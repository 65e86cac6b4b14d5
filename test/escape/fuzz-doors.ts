import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { Agent, type IncomingMessage, request as httpRequest } from "node:http";
import { bearer, EventReader, openResponse, openSession } from "./http-client.ts";
import { type CorpusRequest, INITIALIZE, mirrorHeaders, withEnvelope } from "./corpus.ts";
import { type Due, dueFor } from "./json-rpc-oracle.ts";
import { readLines } from "./read-lines.ts";

// oxlint-disable-next-line typescript/no-explicit-any -- hostile input has answers of every shape
export type Message = any;

export interface Reply {
  /** Of HTTP; on doors that answer elsewhere, of the delivery. */
  readonly status: number | undefined;
  readonly messages: readonly Message[];
}

/** One way into the server for bytes of any kind. */
export interface Door {
  readonly name: string;
  /** Whether several requests may be under way at once. */
  readonly isParallel: boolean;
  /** The door's own form of a request. */
  shape(request: CorpusRequest): CorpusRequest;
  /** Sends one message; resolves when it is answered, or when something sent after it is. */
  send(body: Buffer, request?: CorpusRequest): Promise<Reply>;
  close(): void;
}

const ANSWER_WITHIN_MS = 20_000;

/** `POST /mcp`, where each request has its own answer. */
export async function httpDoor(origin: string, kind: "plain" | "session" | "modern"): Promise<Door> {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const session = kind === "session" ? await openSession(origin, { version: "2025-11-25" }) : {};
  return {
    name: kind,
    isParallel: true,
    shape: (request) => (kind === "modern" ? withEnvelope(request) : request),
    async send(body, request) {
      const mirrored = kind === "modern" && request !== undefined ? mirrorHeaders(request) : {};
      const headers = { "content-type": "application/json", ...session, ...mirrored };
      const response = await postTo(`${origin}/mcp`, body, { headers, agent });
      return { status: response.status, messages: messagesOf(response) };
    },
    close: () => agent.destroy(),
  };
}

/** `POST /mcp/messages`, whose answers come on the stream of `GET /mcp/sse`. */
export async function sseDoor(origin: string): Promise<Door> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const stream = await openResponse(`${origin}/mcp/sse`, { headers: bearer(undefined) });
  const events = new EventReader(stream);
  const { data: endpoint } = await events.find(({ event }) => event === "endpoint");
  const line = new AnsweringLine();
  // The stream ends with the server; what is still expected then is missed by whoever waits for it.
  void pump(events, line).catch(() => undefined);
  return {
    name: "sse",
    isParallel: false,
    shape: (request) => request,
    async send(body) {
      let status: number | undefined;
      const messages = await line.after(isAnswerDue(dueFor(body)), async (sentinel) => {
        const response = await postTo(`${origin}${endpoint}`, body, {
          headers: { "content-type": "application/json" },
          agent,
        });
        status = response.status;
        if (response.text !== "") line.push(JSON.parse(response.text));
        await postTo(`${origin}${endpoint}`, Buffer.from(sentinel), {
          headers: { "content-type": "application/json" },
          agent,
        });
      });
      return { status, messages };
    },
    close() {
      agent.destroy();
      stream.destroy();
    },
  };
}

/** stdin and stdout of a process. Line breaks end a message here and cannot be part of one. */
export async function stdioDoor(child: ChildProcess, kind: "plain" | "session" | "modern"): Promise<Door> {
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("the server was started without pipes");
  const line = new AnsweringLine();
  readLines(stdout, (text) => line.push(JSON.parse(text)));
  const door: Door = {
    name: `stdio ${kind}`,
    isParallel: false,
    shape: (request) => (kind === "modern" ? withEnvelope(request) : request),
    async send(body) {
      const bytes = Buffer.from(body.map((byte) => (byte === 0x0a ? 0x20 : byte)));
      // A line of nothing but spaces is no message.
      const isDue = body.toString("latin1").trim() !== "" && isAnswerDue(dueFor(body));
      const messages = await line.after(
        isDue,
        async (sentinel) => void stdin.write(Buffer.concat([bytes, Buffer.from(`\n${sentinel}\n`)])),
      );
      return { status: undefined, messages };
    },
    close: () => undefined,
  };
  if (kind === "session") await door.send(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: "hello", ...INITIALIZE })));
  if (kind === "modern") line.envelope = withEnvelope(SENTINEL);
  return door;
}

/** It goes the whole way that calls before it went, so that their answers come before its own. */
const SENTINEL: CorpusRequest = { method: "tools/call", params: { name: "echo", arguments: { text: "sentinel" } } };

/** Tells which answers belong to a message by sending a known request behind it. */
class AnsweringLine {
  envelope: CorpusRequest = SENTINEL;
  #received: Message[] = [];
  #wake: () => void = () => undefined;
  #sent = 0;

  push(message: Message): void {
    this.#received.push(message);
    this.#wake();
  }

  async after(isDue: boolean, deliver: (sentinel: string) => Promise<void>): Promise<Message[]> {
    const id = `sentinel ${++this.#sent}`;
    this.#received = [];
    await deliver(JSON.stringify({ jsonrpc: "2.0", id, ...this.envelope }));
    const isOver = (): boolean => this.#received.some((message) => message?.id === id);
    // The answer to a slower request may still come after that of the sentinel.
    const isMissing = (): boolean => isDue && !this.#received.some((message) => isAnswer(message) && message.id !== id);
    const until = Date.now() + ANSWER_WITHIN_MS;
    while ((!isOver() || isMissing()) && Date.now() < until) await this.#next(until);
    if (!isOver()) throw new Error(`the line is dead: ${JSON.stringify(this.#received).slice(0, 500)}`);
    return this.#received.filter((message) => message?.id !== id && !isNotification(message));
  }

  #next(until: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.max(until - Date.now(), 0));
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

interface HttpReply {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

async function postTo(
  url: string,
  body: Buffer,
  { headers, agent }: { readonly headers: Record<string, string>; readonly agent: Agent },
): Promise<HttpReply> {
  const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
  const request = httpRequest(url, {
    method: "POST",
    agent,
    signal,
    headers: { ...headers, "content-length": String(body.length) },
  });
  request.end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
  return { status: response.statusCode ?? 0, type: response.headers["content-type"] ?? "", text };
}

function messagesOf({ type, text }: HttpReply): Message[] {
  if (text === "") return [];
  if (!type.startsWith("text/event-stream")) return [JSON.parse(text)];
  const data = [...text.matchAll(/^data: (.+)$/gm)].map((match) => JSON.parse(match[1] ?? ""));
  return data.filter((message) => !isNotification(message));
}

async function pump(events: EventReader, line: AnsweringLine): Promise<void> {
  for (let event = await events.next(); event !== undefined; event = await events.next())
    line.push(JSON.parse(event.data));
}

function isNotification(message: Message): boolean {
  return typeof message === "object" && message !== null && "method" in message && !("id" in message);
}

function isAnswer(message: Message): boolean {
  return Array.isArray(message) || (typeof message === "object" && message !== null && !("method" in message));
}

function isAnswerDue(due: Due): boolean {
  return due.kind === "batch" ? due.items.some(isAnswerDue) : due.kind !== "silence";
}
