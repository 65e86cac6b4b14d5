import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { finished } from "node:stream/promises";
import { OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type ForwardMessage, readAnswer } from "./forward-message.ts";
import type { Envelope, ForwardSeal } from "./forward-seal.ts";
import type { ServerRegistry } from "./server-registry.ts";

/** Where servers take calls of other servers. */
export const FORWARD_PATH = "/internal/forward";
export const FORWARD_HEADER = "x-owlclaw-forward";

export interface ForwarderOptions {
  readonly seal: ForwardSeal;
  readonly registry: ServerRegistry;
  readonly logger: Logger;
}

const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
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

  /** What the other server answered. @throws OwlError of its own, or `session_elsewhere` when it is gone. */
  async send(to: string, message: ForwardMessage, signal: AbortSignal): Promise<unknown> {
    const { seal, registry, logger } = this.#options;
    const url = await registry.find(to);
    if (url === undefined) throw gone();
    const envelope = seal.newEnvelope(to);
    const body = seal.seal(envelope, "call", JSON.stringify(message));
    let response: { readonly status: number; readonly body: Buffer };
    try {
      response = await this.#post(`${url}${FORWARD_PATH}`, { header: seal.write(envelope), body, signal });
    } catch (error) {
      if (signal.aborted) throw new OwlError("cancelled", "the call was cancelled", { cause: error });
      logger.warning("a call could not be forwarded", { server: to, trace_id: message.traceId, error });
      throw unreachable(error);
    }
    if (response.status !== 200) {
      logger.warning("a server refused a forwarded call", { server: to, status: response.status });
      throw refusedBy(response.status);
    }
    return readAnswer(this.#openAnswer(envelope, response.body));
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  #openAnswer(envelope: Envelope, sealed: Buffer): string {
    const { seal, logger } = this.#options;
    try {
      return seal.open(envelope, "answer", sealed);
    } catch (error) {
      logger.error("what answered in the name of a server does not have the key of the cluster", {
        server: envelope.to,
      });
      throw unreachable(error);
    }
  }

  #post(
    url: string,
    { header, body, signal }: { readonly header: string; readonly body: Buffer; readonly signal: AbortSignal },
  ): Promise<{ readonly status: number; readonly body: Buffer }> {
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
      request.once("error", reject);
      request.once("response", (response) => {
        readAll(response).then((whole) => resolve({ status: response.statusCode ?? 0, body: whole }), reject);
      });
      request.end(body);
    });
  }
}

async function readAll(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  response.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size <= MAX_ANSWER_BYTES) chunks.push(chunk);
    else response.destroy(new RangeError("the answer is too large"));
  });
  await finished(response);
  return Buffer.concat(chunks);
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
