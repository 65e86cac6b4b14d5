import { setTimeout as delay } from "node:timers/promises";
import { ForwardFailure } from "../../cluster/forward-connection.ts";
import { type ForwardOutcome, type SessionMessage, valueOf } from "../../cluster/forward-message.ts";
import type { ServerAddress } from "../../cluster/forwarder.ts";
import type { SessionOwners } from "../../cluster/session-owners.ts";
import { OwlError } from "../../errors/owl-error.ts";
import { Lifeline } from "../../call/lifeline.ts";
import { isObject } from "../../mcp/json-rpc.ts";
import { header, type HttpExchange, onClose } from "./exchange-io.ts";
import { RelayedResponse } from "./relayed-response.ts";
import { onlyHeader } from "./request-target.ts";
import type { SessionOwnership } from "./session-ownership.ts";
import type { SessionRequest } from "./session-endpoint.ts";

/** Headers that matter to a session. */
const RELAYED_HEADERS = ["accept", "mcp-protocol-version", "last-event-id"] as const;
const RETRY_MS = 200;
/** After this many lease times a server that has stopped is known to be gone. */
const PATIENCE_LEASES = 2;

export interface RelayOptions {
  readonly endpoint: SessionMessage["endpoint"];
  /** Takes over sessions whose server is gone. Without it these sessions are lost. */
  readonly ownership?: SessionOwnership;
}

/** Relays each request to the server that owns its session, and the response back to the client. */
export class RemoteSessions {
  readonly #owners: SessionOwners;
  readonly #lines = new Set<RelayedResponse>();
  #isClosing = false;

  constructor(owners: SessionOwners) {
    this.#owners = owners;
  }

  /** Returns false when this server must respond: it has the session, or no server has it. */
  async relay(request: SessionRequest, exchange: HttpExchange, options: RelayOptions): Promise<boolean> {
    const gone = new Lifeline();
    onClose(exchange.response, () => gone.end());
    const relayed = {
      exchange,
      gone,
      message: messageOf(request, exchange, options.endpoint),
      ownership: options.ownership,
    };
    const until = performance.now() + PATIENCE_LEASES * this.#owners.leaseMs;
    for (;;) {
      const outcome = await this.#pass(relayed);
      if (outcome !== "again") return outcome === "answered";
      if (performance.now() > until) throw unreachable("does not answer");
      await delay(RETRY_MS, undefined, { signal: gone.signal }).catch(() => undefined);
      if (gone.isOver) return true;
    }
  }

  close(): void {
    this.#isClosing = true;
    for (const line of this.#lines) line.hangUp();
  }

  /** Finds the owner of the session and sends the request there. */
  async #pass(relayed: Relayed): Promise<"here" | "answered" | "again"> {
    const { ownership, exchange, message } = relayed;
    const { sessionId } = message;
    const term = this.#owners.term();
    const place = await this.#owners.locate(sessionId);
    if (place === undefined) return "here";
    const { owner: id, url, isAwaited } = place;
    if (id === this.#owners.serverId) {
      await ownership?.settled(sessionId);
      ownership?.confirm(sessionId, term);
      return "here";
    }
    // The same applies to a session that this server has taken over: it must not release it.
    if (isAwaited && url === undefined) {
      throw new OwlError("store_unavailable", "the database has crashed, and this session is not written again yet", {
        hint: "try again in a moment",
      });
    }
    await ownership?.letGo(sessionId);
    if (url !== undefined) return (await this.#try({ id, url }, relayed)) ? "answered" : "again";
    const adoption = await ownership?.adopt(sessionId, id, exchange);
    return adoption === "moved" ? "again" : "here";
  }

  /** Returns false when the other server did nothing, so that the request can be sent again. */
  async #try(place: ServerAddress, relayed: Relayed): Promise<boolean> {
    const { gone, message } = relayed;
    const { response, principal } = relayed.exchange;
    const line = new RelayedResponse({ response, principal, gone, silenceMs: this.#owners.leaseMs });
    this.#lines.add(line);
    let outcome: ForwardOutcome | number;
    try {
      if (this.#isClosing) line.hangUp();
      outcome = await this.#owners.ask(place, message, line);
    } catch (error) {
      return this.#isSettled(error, relayed);
    } finally {
      this.#lines.delete(line);
      line.close();
    }
    if (outcome === 503) return false;
    if (typeof outcome === "number") throw unreachable("did not accept the request", outcome);
    valueOf(outcome);
    response.end();
    return true;
  }

  /**
   * Decides on a request whose connection to the other server failed: true when it is settled, false to send it again.
   */
  #isSettled(error: unknown, { message, exchange: { response }, gone }: Relayed): boolean {
    if (response.destroyed || gone.isOver) return true;
    if (response.headersSent) {
      // The client resumes an interrupted stream, on any server.
      if (this.#isClosing) response.end();
      else response.destroy();
      return true;
    }
    if (this.#isClosing) throw new OwlError("shutting_down", "the server is stopping", { cause: error });
    if (error instanceof ForwardFailure && (!error.wasSent || isRepeatable(message))) return false;
    throw unreachable("does not answer; whether it has done what was asked is not known", undefined, error);
  }
}

/** One request that is being relayed. */
interface Relayed {
  readonly exchange: HttpExchange;
  readonly message: SessionMessage;
  /** Ends when the client disconnects. */
  readonly gone: Lifeline;
  readonly ownership: SessionOwnership | undefined;
}

/** Whether the request can be sent twice without harm: it calls no tool. */
function isRepeatable({ method, body }: SessionMessage): boolean {
  if (method !== "POST") return true;
  const items: unknown = jsonOf(body);
  return (Array.isArray(items) ? items : [items]).every(
    (item) => isObject(item) && (!("method" in item) || HARMLESS.test(String(item["method"]))),
  );
}

/** For a body that is not valid JSON, which the owner of the session rejects. */
function jsonOf(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return [];
  }
}

const HARMLESS =
  /^(?:ping|notifications\/.*|.*\/list|resources\/.*|prompts\/get|completion\/complete|logging\/setLevel)$/;

function messageOf(
  { method, sessionId, body }: SessionRequest,
  { request, label, traceId }: HttpExchange,
  endpoint: SessionMessage["endpoint"],
): SessionMessage {
  const authorization = onlyHeader(request, "authorization");
  const headers: Record<string, string> = {};
  for (const name of RELAYED_HEADERS) {
    const value = header(request, name);
    if (value !== undefined) headers[name] = value;
  }
  return {
    kind: "session",
    endpoint,
    method,
    sessionId,
    headers,
    body,
    traceId,
    ...(label !== undefined && { label }),
    ...(authorization !== undefined && { authorization }),
  };
}

function unreachable(why: string, status?: number, cause?: unknown): OwlError {
  return new OwlError("session_elsewhere", `the server that has this MCP session ${why}`, {
    retryable: true,
    hint: "try again in a moment, or send initialize to start a new session",
    ...(status !== undefined && { facts: { status } }),
    cause,
  });
}
