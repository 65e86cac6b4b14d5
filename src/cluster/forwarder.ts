import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { isOwlError, OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type ForwardMessage, type ForwardNews, type ForwardOutcome, readPiece, valueOf } from "./forward-message.ts";
import { PieceReader } from "./forward-pieces.ts";
import type { ForwardSeal } from "./forward-seal.ts";
import type { ServerRegistry } from "./server-registry.ts";

/** Where servers take calls of other servers. */
export const FORWARD_PATH = "/internal/forward";
export const FORWARD_HEADER = "x-owlclaw-forward";

export interface ForwarderOptions {
  readonly seal: ForwardSeal;
  readonly registry: ServerRegistry;
  readonly logger: Logger;
}

export interface ForwardCall {
  readonly signal: AbortSignal;
  readonly hear: (news: ForwardNews) => void;
}

/** Below the time after which the other side closes a line that nobody uses. */
const IDLE_LINE_MS = 30_000;
const CONNECT_MS = 5000;

/** Sends calls to the server that has their sandbox. Whoever hangs up here has hung up there. */
export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #http = new HttpAgent({ keepAlive: true, timeout: IDLE_LINE_MS });
  readonly #https = new HttpsAgent({ keepAlive: true, timeout: IDLE_LINE_MS });

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /**
   * What the other server answered; what it tells until then goes to `hear`.
   * @throws OwlError of its own, or `session_elsewhere` when it is gone.
   */
  async send(to: string, message: ForwardMessage, { signal, hear }: ForwardCall): Promise<unknown> {
    const { seal, registry, logger } = this.#options;
    const url = await registry.find(to);
    if (url === undefined) throw gone();
    const envelope = seal.newEnvelope(to);
    const body = seal.seal(envelope, "call", JSON.stringify(message));
    let outcome: ForwardOutcome | number;
    try {
      const response = await this.#post(`${url}${FORWARD_PATH}`, { header: seal.write(envelope), body, signal });
      const status = response.statusCode ?? 0;
      if (status !== 200) response.destroy();
      outcome = status === 200 ? await readOutcome(response, new PieceReader(seal, envelope), hear) : status;
    } catch (error) {
      if (signal.aborted) throw new OwlError("cancelled", "the call was cancelled", { cause: error });
      if (isOwlError(error))
        logger.error("what answered in the name of a server does not have the key of the cluster", { server: to });
      else logger.warning("a call could not be forwarded", { server: to, trace_id: message.traceId, error });
      throw unreachable(error);
    }
    if (typeof outcome !== "number") return valueOf(outcome);
    logger.warning("a server refused a forwarded call", { server: to, status: outcome });
    throw refusedBy(outcome);
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  #post(
    url: string,
    { header, body, signal }: { readonly header: string; readonly body: Buffer; readonly signal: AbortSignal },
  ): Promise<IncomingMessage> {
    const isTls = url.startsWith("https:");
    const options = {
      method: "POST",
      signal,
      headers: {
        [FORWARD_HEADER]: header,
        "content-type": "application/octet-stream",
        "content-length": body.length,
      },
    };
    return new Promise((resolve, reject) => {
      const request = isTls
        ? requestHttps(url, { ...options, agent: this.#https })
        : requestHttp(url, { ...options, agent: this.#http });
      request.once("socket", (socket) => {
        // The agent's own limit is for lines that nobody uses: a call may take its time.
        socket.setTimeout(0);
        if (!socket.connecting) return;
        const timer = setTimeout(() => request.destroy(new Error("no connection in time")), CONNECT_MS);
        socket.once("connect", () => clearTimeout(timer));
        socket.once("close", () => clearTimeout(timer));
      });
      request.on("error", reject);
      request.once("response", resolve);
      request.end(body);
    });
  }
}

/** Reads pieces until the one that says how it ended. A line that ends before it was cut. */
function readOutcome(
  response: IncomingMessage,
  pieces: PieceReader,
  hear: ForwardCall["hear"],
): Promise<ForwardOutcome> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const read = (chunk: Buffer): void => {
      for (const text of pieces.read(chunk)) {
        const piece = readPiece(text);
        if ("news" in piece) hear(piece);
        else return end(() => resolve(piece));
      }
    };
    const end = (settle: () => void): void => {
      isOver = true;
      settle();
    };
    response.on("data", (chunk: Buffer) => {
      if (isOver) return;
      try {
        read(chunk);
      } catch (error) {
        end(() => reject(error));
        response.destroy();
      }
    });
    response.on("error", reject);
    response.once("close", () => reject(new Error("the answer has no end")));
  });
}

function gone(): OwlError {
  return new OwlError("session_elsewhere", "the sandbox with this session_id was on a server that is gone");
}

function unreachable(cause: unknown): OwlError {
  return new OwlError(
    "session_elsewhere",
    "the server that has the sandbox with this session_id does not answer; whether the call was made there is not known",
    { retryable: true, cause },
  );
}

function refusedBy(status: number): OwlError {
  const why = status === 503 ? "is stopping or busy" : "did not accept the call";
  return new OwlError("session_elsewhere", `the server that has the sandbox with this session_id ${why}`, {
    retryable: status === 503,
    facts: { status },
  });
}
