import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { type ForwardNews, type ForwardOutcome, readPiece } from "./forward-message.ts";
import { type Envelope, type ForwardSeal, refused } from "./forward-seal.ts";

/** Where servers take calls of other servers. */
export const FORWARD_PATH = "/internal/forward";
export const FORWARD_HEADER = "x-owlclaw-forward";

/** Below the time after which the other side closes a line that nobody uses. */
const IDLE_LINE_MS = 30_000;
const CONNECT_MS = 5000;

/** The line failed. What was not sent was not done; of what was, nobody knows. */
export class ForwardFailure extends Error {
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
export class ForwardConnections {
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
      request.on("error", (error) => reject(new ForwardFailure(error, isConnected())));
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
    response.on("error", (error) => reject(new ForwardFailure(error, true)));
    response.once("close", () => reject(new ForwardFailure(new Error("the answer has no end"), true)));
  });
}

const LENGTH_BYTES = 4;
const MAX_PIECE_BYTES = 256 * 1024 * 1024;

/** Seals an answer piece by piece: none can be left out, put in another place or come from another answer. */
export class PieceWriter {
  readonly #seal: ForwardSeal;
  readonly #envelope: Envelope;
  #next = 0;

  constructor(seal: ForwardSeal, envelope: Envelope) {
    this.#seal = seal;
    this.#envelope = envelope;
  }

  write(text: string): Buffer {
    const sealed = this.#seal.seal(this.#envelope, `answer ${this.#next}`, text);
    this.#next += 1;
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(sealed.length);
    return Buffer.concat([length, sealed]);
  }
}

/** Opens what a `PieceWriter` has sealed, however the network has cut it. */
export class PieceReader {
  readonly #seal: ForwardSeal;
  readonly #envelope: Envelope;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #needed = LENGTH_BYTES;
  #next = 0;

  constructor(seal: ForwardSeal, envelope: Envelope) {
    this.#seal = seal;
    this.#envelope = envelope;
  }

  /** The pieces that this chunk completes. @throws OwlError when one is not what belongs here. */
  *read(chunk: Buffer): Iterable<string> {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (this.#bytes >= this.#needed) {
      const held = Buffer.concat(this.#chunks);
      const end = LENGTH_BYTES + held.readUInt32BE();
      if (end > MAX_PIECE_BYTES) throw refused("its content is too large");
      this.#chunks = [held];
      this.#needed = end;
      if (held.length < end) return;
      const text = this.#seal.open(this.#envelope, `answer ${this.#next}`, held.subarray(LENGTH_BYTES, end));
      this.#next += 1;
      this.#chunks = [held.subarray(end)];
      this.#bytes = held.length - end;
      this.#needed = LENGTH_BYTES;
      yield text;
    }
  }
}
