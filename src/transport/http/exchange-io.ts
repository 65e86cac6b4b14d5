import { type IncomingMessage, ServerResponse, type OutgoingHttpHeader, type OutgoingHttpHeaders } from "node:http";
import type { Principal } from "../../auth/principal.ts";
import { ERROR_KINDS } from "../../errors/kinds.ts";
import type { OwlError } from "../../errors/owl-error.ts";
import { Lifeline } from "../../call/lifeline.ts";
import { type RequestId, toJsonParts } from "../../mcp/json-rpc.ts";
import { PLAIN_VERSION } from "../../mcp/versions.ts";
import { errorAnswer } from "../../mcp/wire-error.ts";
import { traceIdFrom } from "../../mcp/request-observer.ts";

/** The target of a response: the connection of a client, or the stream to another server that has the client. */
export interface AnswerSink {
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  readonly writableEnded: boolean;
  readonly writableFinished: boolean;
  /** Bytes that are buffered and not sent yet. */
  readonly writableLength: number;
  writeHead(status: number, headers: Readonly<Record<string, string | number>>): unknown;
  flushHeaders(): void;
  write(text: string | Buffer): unknown;
  end(text?: string | Buffer): unknown;
  destroy(): unknown;
  once(event: "close", listener: () => void): unknown;
}

/** One request to a session. Its client may be connected to another server. */
export interface SessionExchange {
  readonly request: Pick<IncomingMessage, "headers">;
  readonly response: AnswerSink;
  readonly principal: Principal;
  readonly label: string | undefined;
  readonly traceId: string;
  /** Marks the request as a stream, for which shutdown does not wait. */
  readonly release: () => void;
}

/** One HTTP request that has passed the guards. */
export interface HttpExchange extends SessionExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

const MAX_COPIED_BYTES = 64 * 1024;

export interface ErrorOptions {
  readonly traceId: string;
  readonly withStack: boolean;
  readonly id?: RequestId | null;
  readonly version?: string;
  /** Default: the status of the error kind. Clients without a session get 200 for every JSON-RPC response. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export function sendJson(
  response: AnswerSink,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const parts = toJsonParts(body);
  if (parts.length === 1) return sendJsonText(response, status, String(parts[0]), headers);
  if (response.headersSent || response.destroyed) return;
  const buffers = parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part));
  const length = buffers.reduce((sum, part) => sum + part.length, 0);
  response.writeHead(status, { "content-type": "application/json", "content-length": length, ...headers });
  // One write of a concatenated copy is faster than several writes, unless the body is long.
  if (length <= MAX_COPIED_BYTES) return void response.end(Buffer.concat(buffers, length));
  for (const part of buffers) response.write(part);
  response.end();
}

export function sendJsonText(
  response: AnswerSink,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

export function sendEmpty(response: AnswerSink, status: number, headers: Readonly<Record<string, string>> = {}): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { "content-length": 0, ...headers });
  response.end();
}

export function sendError(response: AnswerSink, error: OwlError, options: ErrorOptions): void {
  const {
    traceId,
    withStack,
    id = null,
    version = PLAIN_VERSION,
    status = ERROR_KINDS[error.kind].httpStatus,
    headers = {},
  } = options;
  sendJson(response, status, errorAnswer(id, error, { version, traceId, withStack }), headers);
}

export function header(request: Pick<IncomingMessage, "headers">, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** Matches `text/event-stream`, unless its weight is zero, which means not acceptable. */
const EVENT_STREAM_RANGE = /^\s*text\/event-stream\s*(?:;(?!.*\bq=0(?:\.0*)?\s*(?:;|$))|$)/i;

/** Whether the client accepts an event stream. A client without an Accept header gets plain JSON. */
export function acceptsEventStream(request: Pick<IncomingMessage, "headers">): boolean {
  const accept = header(request, "accept");
  return accept !== undefined && accept.split(",").some((range) => EVENT_STREAM_RANGE.test(range));
}

/** Ends when the client disconnects before the response is complete. */
export function lifeOf(response: AnswerSink): Lifeline {
  const life = new Lifeline();
  onClose(response, () => {
    if (!response.writableFinished) life.end();
  });
  return life;
}

/**
 * Calls the listener when the response closes. A response that is already closed, because the client disconnected
 * during authentication, fires no further event.
 */
export function onClose(response: AnswerSink, listener: () => void): void {
  if (response.destroyed) queueMicrotask(listener);
  else response.once("close", listener);
}

const TRACE_HEADER = "x-trace-id";

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

/**
 * Sends the trace id with every response. A header that is set before `writeHead` makes Node process all headers twice,
 * which takes longer than the checks of governance. This class passes it to `writeHead` instead.
 */
export class TracedResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
  traceId = "";

  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    // The router sets no trace id for a request that Node itself rejects.
    this.traceId ||= traceIdFrom(this.req.headers["traceparent"]);
    if (typeof reason === "string" || Array.isArray(reason) || this.getHeaderNames().length > 0) {
      this.setHeader(TRACE_HEADER, this.traceId);
      return typeof reason === "string" ? super.writeHead(status, reason, headers) : super.writeHead(status, reason);
    }
    return super.writeHead(status, { [TRACE_HEADER]: this.traceId, ...reason });
  }
}

/** Sets the trace id header of the response. */
export function tellTraceId(response: ServerResponse, traceId: string): void {
  if (response instanceof TracedResponse) response.traceId = traceId;
  else response.setHeader(TRACE_HEADER, traceId);
}
