import type { IncomingMessage, ServerResponse } from "node:http";
import { type ApiAnswer, type ApiRoute, Attachment, Events } from "../../operator/api.ts";
import type { OperatorSession } from "../../operator/operator-sessions.ts";
import { OwlError } from "../../errors/owl-error.ts";
import { parseJson } from "../../mcp/json-rpc.ts";
import type { DashboardLogin } from "./dashboard-login.ts";
import { EventStream } from "./event-stream.ts";
import { onClose, sendJson } from "./exchange-io.ts";
import { readBody, steadyBody } from "./read-body.ts";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

export interface DashboardApiOptions {
  readonly routes: readonly ApiRoute[];
  readonly login: DashboardLogin;
  readonly keepAliveMs: number;
}

export interface DashboardExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The path below `/dashboard/api/`, not decoded. */
  readonly name: string;
  readonly query: string;
}

interface Found {
  readonly route: ApiRoute;
  readonly parts: readonly string[];
}

const MAX_BODY_BYTES = 1_048_576;
const STALL_MS = 30_000;

/** Serves `/dashboard/api/…`: finds the route, calls it and sends its answer. */
export class DashboardApi {
  readonly #options: DashboardApiOptions;
  readonly #routes: readonly { readonly route: ApiRoute; readonly pattern: RegExp }[];

  constructor(options: DashboardApiOptions) {
    this.#options = options;
    this.#routes = options.routes.map((route) => ({ route, pattern: patternOf(route.path) }));
  }

  async serve(exchange: DashboardExchange): Promise<void> {
    const { request, response, name } = exchange;
    const { login } = this.#options;
    const asked = `${request.method} ${name}`;
    if (asked === "GET login") return sendJson(response, 200, login.facts(request));
    if (asked === "POST login") return login.login(request, response);
    const session = login.sessionOf(request);
    if (asked === "GET session") return login.session(session, response);
    if (asked === "POST logout") return login.logout(request, response);
    const { route, parts } = this.#find(exchange);
    await this.#answer(exchange, { route, parts }, session);
  }

  #find({ request, response, name }: DashboardExchange): Found {
    const found = this.#routes.flatMap(({ route, pattern }) => {
      const match = pattern.exec(name);
      return match === null ? [] : [{ route, parts: match.slice(1).map(decoded) }];
    });
    if (found.length === 0) throw new OwlError("route_not_found", "the dashboard has no such thing");
    const fitting = found.find(({ route }) => route.method === request.method);
    if (fitting === undefined) throw wrongMethod(request, response, found.map(({ route }) => route.method).join(", "));
    return fitting;
  }

  async #answer(exchange: DashboardExchange, { route, parts }: Found, session: OperatorSession): Promise<void> {
    const { request, response, query } = exchange;
    const gone = new AbortController();
    onClose(response, () => gone.abort());
    const body: unknown = route.method === "POST" ? await readJson(request) : undefined;
    const answer = await route.answer({
      operator: session.operator,
      parts,
      query: new URLSearchParams(query),
      body,
      bytes: steadyBody(request, STALL_MS),
      signal: gone.signal,
    });
    await this.#send(answer, response, session);
  }

  async #send(answer: ApiAnswer, response: ServerResponse, session: OperatorSession): Promise<void> {
    if (answer instanceof Events) this.#stream(answer, response, session);
    else if (answer instanceof Attachment) await sendAttachment(answer, response);
    else sendJson(response, 200, answer);
  }

  #stream(events: Events, response: ServerResponse, session: OperatorSession): void {
    // The client has already disconnected, so `close` will not fire again.
    if (response.destroyed) return;
    const { keepAliveMs } = this.#options;
    // The stream ends with the operator's session, which ends with the token.
    const stream = new EventStream(response, { headers: {}, keepAliveMs, reader: undefined });
    const stop = events.start({
      send: (event, data, id) => stream.send({ event, data, ...(id !== undefined && { id }) }),
      end: () => stream.end(),
    });
    const off = session.onEnd(() => stream.end());
    onClose(response, () => {
      off();
      stop();
    });
  }
}

export function wrongMethod({ method }: IncomingMessage, response: ServerResponse, allow: string): OwlError {
  response.setHeader("allow", allow);
  return new OwlError("method_not_allowed", `${method} is not allowed here`);
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, "([^/]{1,256})")}$`);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new OwlError("invalid_request", "the path is no percent-encoded UTF-8");
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const text = await readBody(request, MAX_BODY_BYTES);
  if (text === "") return {};
  try {
    return parseJson(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new OwlError("invalid_params", `the body is not valid JSON: ${reason}`);
  }
}

/** A browser that reads nothing for this time is disconnected. */
const UNREAD_MS = 60_000;

/** Sends the chunks. Closes their iterator when all are sent, and also when the browser disconnects before. */
export async function sendAttachment({ name, type, chunks }: Attachment, response: ServerResponse): Promise<void> {
  const iterator = chunks[Symbol.asyncIterator]();
  try {
    // Reads the first chunk before it sends headers, so that a read error becomes an error response and not an empty
    // file.
    const first = await iterator.next();
    response.setTimeout(UNREAD_MS, () => response.destroy());
    response.writeHead(200, { "content-type": type, "content-disposition": dispositionOf(name) });
    const all = async function* (): AsyncGenerator<string | Uint8Array> {
      if (first.done === true) return;
      yield first.value;
      yield* { [Symbol.asyncIterator]: () => iterator };
    };
    await pipeline(Readable.from(all()), response);
  } finally {
    // A stream that is destroyed before its second chunk does not close the iterator.
    await iterator.return?.();
  }
}

function dispositionOf(name: string): string {
  // A cut may leave half of a surrogate pair at the end. The conversion replaces it.
  const whole = Buffer.from(name.slice(0, 200)).toString();
  const plain = whole.replaceAll(/[^\w.-]/g, "_").slice(0, 128) || "file";
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded(whole)}`;
}

/** Also encodes the characters that the header syntax reserves. */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
}
