import { PROTOCOL_VERSION_META_KEY } from "@modelcontextprotocol/server";
import type { Readable, Writable } from "node:stream";
import type { Principal } from "../../auth/principal.ts";
import { OwlError, toOwlError } from "../../errors/owl-error.ts";
import type { Caller } from "../../call/call.ts";
import { Connection } from "../../mcp/connection.ts";
import {
  type Incoming,
  isObject,
  type JsonRpcMessage,
  type JsonRpcRequest,
  type JsonRpcResponse,
  parseMessages,
  type RequestId,
  serializeMessage,
} from "../../mcp/json-rpc.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import { newTraceId } from "../../mcp/request-observer.ts";
import { hasBatches, isModern, isSupported } from "../../mcp/versions.ts";
import { errorAnswer } from "../../mcp/wire-error.ts";
import { decodeUtf8 } from "../http/read-body.ts";
import { OpenRequests } from "../open-requests.ts";
import { type Line, LineReader, FloodDelay, RequestGate } from "./line-reader.ts";

export interface StdioTransportOptions {
  readonly mcp: Mcp;
  readonly clientId: string;
  readonly maxLineBytes: number;
  readonly input: Readable;
  readonly output: Writable;
}

const LAST_WORDS_MS = 500;
/**
 * The time for calls that are cancelled when the client disconnects: their ledger rows are written within the 2 s that
 * clients wait.
 */
const STOP_GRACE_MS = 300;

/** One client on stdin and stdout, with one message per line. */
export class StdioTransport {
  /** Resolves when the client has closed stdin. */
  readonly ended: Promise<void>;
  readonly #options: StdioTransportOptions;
  readonly #principal: Principal;
  readonly #connection: Connection;
  readonly #reader: LineReader;
  readonly #gate = new RequestGate({ maxRunning: 256, maxWaitingBytes: 64 * 1024 * 1024 });
  readonly #open = new OpenRequests();
  readonly #floodDelay: FloodDelay;
  /** The revision of a client that has sent a request without handshake. Later requests use it too. */
  #modernVersion: string | undefined;

  constructor(options: StdioTransportOptions) {
    const { mcp, clientId, maxLineBytes, input } = options;
    this.#options = options;
    this.#principal = { id: clientId, scopes: [], claims: {} };
    this.#connection = new Connection({ mcp, unrelated: (message) => this.#write(message) });
    const asker = { principal: this.#principal, label: undefined };
    this.#floodDelay = new FloodDelay(input, () => mcp.pipeline.governance?.governor.floodDelayMs(asker) ?? 0);
    this.#reader = new LineReader(maxLineBytes, (line) => void this.#onLine(line));
    this.ended = new Promise((resolve) => {
      input.on("data", (chunk: Buffer) => {
        this.#reader.push(chunk);
        this.#floodDelay.apply();
      });
      input.once("end", () => {
        this.#reader.end();
        resolve();
      });
      input.once("error", () => resolve());
    });
  }

  /** Stops reading, lets running requests finish until the deadline, then cancels them. */
  async close(deadlineMs: number): Promise<void> {
    const { mcp } = this.#options;
    this.#floodDelay.stop();
    const drained = await this.#open.whenIdle(deadlineMs);
    if (!drained)
      mcp.logger.warning("shutdown deadline passed, cancelling running requests", { open: this.#open.count });
    const running = mcp.pipeline.governance?.running;
    if (running !== undefined) running.stopGraceMs = STOP_GRACE_MS;
    await this.#connection.close();
    await running?.whenEmpty(STOP_GRACE_MS * 2);
    await flushed(this.#options.output);
  }

  async #onLine(line: Line): Promise<void> {
    this.#floodDelay.count();
    const release = this.#open.open();
    try {
      const answer = await this.#answer(line, release);
      if (answer !== undefined) this.#write(answer);
    } catch (thrown) {
      this.#write(this.#refusal(null, toOwlError(thrown), this.#version));
    } finally {
      release();
    }
  }

  async #answer(line: Line, release: () => void): Promise<JsonRpcMessage | readonly JsonRpcMessage[] | undefined> {
    if (!line.ok) throw line.error;
    const text = decodeUtf8(line.bytes).trim();
    if (text === "") return undefined;
    const parsed = parseMessages(text);
    const bytes = line.bytes.length;
    // A subscription has no end of its own, so shutdown does not wait for it.
    if (!parsed.batch && parsed.item.kind === "request" && parsed.item.message.method === "subscriptions/listen")
      release();
    if (!parsed.batch) return this.#serve(parsed.item, bytes);
    if (!hasBatches(this.#version))
      throw new OwlError("invalid_request", `revision ${this.#version} has no batches`, {
        hint: "send one message at a time",
      });
    const answers = (
      await Promise.all(parsed.items.map((item) => this.#serve(item, bytes / parsed.items.length)))
    ).filter((answer) => answer !== undefined);
    return answers.length === 0 ? undefined : answers;
  }

  async #serve(item: Incoming, bytes: number): Promise<JsonRpcResponse | undefined> {
    switch (item.kind) {
      case "request":
        return this.#serveRequest(item.message, bytes);
      case "notification":
        this.#connection.notify(item.message);
        return undefined;
      case "response":
        this.#connection.respond(item.message);
        return undefined;
      case "invalid":
        return this.#refusal(item.id, item.error, this.#version);
    }
  }

  async #serveRequest(message: JsonRpcRequest, bytes: number): Promise<JsonRpcResponse | undefined> {
    const incoming = {
      caller: this.#callerOf(message),
      traceId: newTraceId(),
      gone: undefined,
      stream: (sent: JsonRpcMessage) => this.#write(sent),
    };
    const serve = (): Promise<JsonRpcResponse | undefined> => this.#connection.request(message, incoming);
    try {
      // A subscription stays open as long as the client, and does not count as a running request.
      return message.method === "subscriptions/listen" ? await serve() : await this.#gate.run(bytes, serve);
    } catch (thrown) {
      return this.#refusal(message.id, toOwlError(thrown), incoming.caller.protocolVersion);
    }
  }

  get #version(): string {
    return this.#modernVersion ?? this.#connection.version;
  }

  #callerOf(message: JsonRpcRequest): Caller {
    return {
      principal: this.#principal,
      label: undefined,
      transport: "stdio",
      protocolVersion: this.#versionOf(message),
      sessionId: "stdio",
    };
  }

  #versionOf({ method, params }: JsonRpcRequest): string {
    if (this.#modernVersion !== undefined || this.#connection.isInitialized) return this.#version;
    const meta = params?.["_meta"];
    const claimed = isObject(meta) ? meta[PROTOCOL_VERSION_META_KEY] : undefined;
    if (typeof claimed !== "string" || !isModern(claimed) || !isSupported(claimed)) return this.#version;
    // A client may send `server/discover` and still use the handshake afterwards.
    if (method !== "server/discover") this.#modernVersion = claimed;
    return claimed;
  }

  #refusal(id: RequestId | null, error: OwlError, version: string): JsonRpcResponse {
    const { withStack, logger } = this.#options.mcp;
    const traceId = newTraceId();
    logger.warning("request refused", { kind: error.kind, reason: error.message, request_id: id, trace_id: traceId });
    return errorAnswer(id, error, { version, traceId, withStack });
  }

  readonly #onDrain = (): void => this.#gate.resume();

  #write(message: JsonRpcMessage | readonly JsonRpcMessage[]): void {
    const { output } = this.#options;
    if (output.write(`${serializeMessage(message)}\n`)) return;
    // While the client does not read, no more of its requests are started. stdin is still read, so that its end is
    // noticed.
    this.#gate.pause();
    if (output.listenerCount("drain", this.#onDrain) === 0) output.once("drain", this.#onDrain);
  }
}

/** Waits a limited time until the last answers are written. */
function flushed(output: Writable): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LAST_WORDS_MS);
    output.write("", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
