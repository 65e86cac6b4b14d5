import type { Authenticator } from "../../auth/authenticator.ts";
import type { ForwardedRequest } from "../../cluster/forward-receiver.ts";
import type { SessionMessage } from "../../cluster/forward-message.ts";
import type { SessionExchange } from "./exchange-io.ts";
import { RelayedAnswer } from "./relayed-answer.ts";
import type { SessionRequest } from "./session-door.ts";

type Serve = (request: SessionRequest, exchange: SessionExchange) => Promise<void>;

export interface RelayedRequestsOptions {
  readonly authenticator: Authenticator;
  /** How often the other server hears that this one is there. */
  readonly beatMs: number;
  readonly doors: Readonly<Record<SessionMessage["door"], Serve>>;
}

/** Takes requests to sessions of this server that clients have sent to others. */
export class RelayedRequests {
  readonly #options: RelayedRequestsOptions;

  constructor(options: RelayedRequestsOptions) {
    this.#options = options;
  }

  /** Resolves when the answer is complete. @throws OwlError for the other server to tell the client. */
  async serve(message: SessionMessage, line: ForwardedRequest): Promise<null> {
    const { authenticator, beatMs, doors } = this.#options;
    const { door, method, sessionId, body, headers, label, traceId, authorization } = message;
    const principal = await authenticator.authenticate(authorization);
    const response = new RelayedAnswer(line);
    const { release } = line;
    // A stream is open as long as its client likes.
    if (method === "GET") release();
    const heart = setInterval(() => line.tell({ news: "alive" }), beatMs);
    try {
      const exchange = { request: { headers }, response, principal, label, traceId, release };
      const served = doors[door]({ method, sessionId, body }, exchange);
      line.linger(served);
      const failed = new Promise<never>((_resolve, reject) => void served.catch(reject));
      await Promise.race([response.closed, failed]);
    } finally {
      clearInterval(heart);
    }
    return null;
  }
}
