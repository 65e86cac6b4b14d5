import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { type ForwardNews, type ForwardOutcome, readPiece } from "./forward-message.ts";
import type { PieceReader } from "./forward-pieces.ts";

/** Where servers take calls of other servers. */
export const FORWARD_PATH = "/internal/forward";
export const FORWARD_HEADER = "x-owlclaw-forward";

/** Below the time after which the other side closes a line that nobody uses. */
const IDLE_LINE_MS = 30_000;
const CONNECT_MS = 5000;

/** The line failed. What was not sent was not done; of what was, nobody knows. */
export class LineFailure extends Error {
  readonly wasSent: boolean;

  constructor(cause: unknown, wasSent: boolean) {
    super(cause instanceof Error ? cause.message : "the line failed", { cause });
    this.wasSent = wasSent;
  }
}

interface Letter {
  readonly header: string;
  readonly body: Buffer;
  readonly signal: AbortSignal;
}

/** Lines to other servers, kept for the next call. */
export class ForwardLines {
  readonly #http = new HttpAgent({ keepAlive: true, timeout: IDLE_LINE_MS });
  readonly #https = new HttpsAgent({ keepAlive: true, timeout: IDLE_LINE_MS });

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  /** @throws LineFailure */
  post(origin: string, { header, body, signal }: Letter): Promise<IncomingMessage> {
    const url = `${origin}${FORWARD_PATH}`;
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
      const request = url.startsWith("https:")
        ? requestHttps(url, { ...options, agent: this.#https })
        : requestHttp(url, { ...options, agent: this.#http });
      const isConnected = watchConnecting(request);
      request.on("error", (error) => reject(new LineFailure(error, isConnected())));
      request.once("response", resolve);
      request.end(body);
    });
  }
}

/** Says whether there is a connection that something may have been sent over. */
function watchConnecting(request: ClientRequest): () => boolean {
  let isConnected = false;
  request.once("socket", (socket) => {
    // The agent's own limit is for lines that nobody uses: a call may take its time.
    socket.setTimeout(0);
    isConnected = !socket.connecting;
    if (isConnected) return;
    const timer = setTimeout(() => request.destroy(new Error("no connection in time")), CONNECT_MS);
    socket.once("connect", () => {
      isConnected = true;
      clearTimeout(timer);
    });
    socket.once("close", () => clearTimeout(timer));
  });
  return () => isConnected;
}

/** Reads pieces until the one that says how it ended. A line that ends before it was cut. */
export function readOutcome(
  response: IncomingMessage,
  pieces: PieceReader,
  hear: (news: ForwardNews) => void,
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
    response.on("error", (error) => reject(new LineFailure(error, true)));
    response.once("close", () => reject(new LineFailure(new Error("the answer has no end"), true)));
  });
}
