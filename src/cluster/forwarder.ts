import { isOwlError, OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";
import { ForwardConnections, readOutcome, PieceReader } from "./forward-connection.ts";
import { type ForwardMessage, type ForwardNews, type ForwardOutcome, valueOf } from "./forward-message.ts";
import type { ForwardSeal } from "./forward-seal.ts";
import type { ServerRegistry } from "./server-registry.ts";

export interface ForwarderOptions {
  readonly seal: ForwardSeal;
  readonly registry: ServerRegistry;
  readonly logger: Logger;
}

export interface ForwardCall {
  readonly signal: AbortSignal;
  readonly hear: (news: ForwardNews) => void;
}

/** Which server, and where it is. */
export interface ServerAddress {
  readonly id: string;
  readonly url: string;
}

/** Sends calls to the server that has what they are about. Whoever hangs up here has hung up there. */
export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #lines = new ForwardConnections();

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /**
   * What the other server answered; what it tells until then goes to `hear`.
   * @throws OwlError of its own, or `session_elsewhere` when it is gone.
   */
  async send(to: string, message: ForwardMessage, call: ForwardCall): Promise<unknown> {
    const { registry, logger } = this.#options;
    const url = await registry.find(to);
    if (url === undefined) throw gone();
    let outcome: ForwardOutcome | number;
    try {
      outcome = await this.ask({ id: to, url }, message, call);
    } catch (error) {
      if (call.signal.aborted) throw new OwlError("cancelled", "the call was cancelled", { cause: error });
      if (!isOwlError(error))
        logger.warning("a call could not be forwarded", { server: to, trace_id: message.traceId, error });
      throw unreachable(error);
    }
    if (typeof outcome === "number") throw refusedBy(outcome);
    return valueOf(outcome);
  }

  /**
   * How it ended there, or the status with which it was not even taken.
   * @throws LineFailure, or OwlError when what answers does not have the key.
   */
  async ask({ id, url }: ServerAddress, message: ForwardMessage, call: ForwardCall): Promise<ForwardOutcome | number> {
    const { seal, logger } = this.#options;
    const envelope = seal.newEnvelope(id);
    const body = seal.seal(envelope, "call", JSON.stringify(message));
    try {
      const response = await this.#lines.post(url, { header: seal.write(envelope), body, signal: call.signal });
      const status = response.statusCode ?? 0;
      if (status === 200) return await readOutcome(response, new PieceReader(seal, envelope), call.hear);
      response.destroy();
      logger.warning("a server refused a forwarded call", { server: id, status });
      return status;
    } catch (error) {
      if (isOwlError(error))
        logger.error("what answered in the name of a server does not have the key of the cluster", { server: id });
      throw error;
    }
  }

  close(): void {
    this.#lines.close();
  }
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
