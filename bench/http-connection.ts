import { type Socket, connect } from "node:net";
import { once } from "node:events";

export interface HttpAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/**
 * One kept-alive HTTP/1.1 connection that carries one request at a time.
 * It does as little as it can, so that the client is not what is measured.
 */
export class HttpConnection {
  readonly #socket: Socket;
  #received = "";
  #resolve: ((answer: HttpAnswer) => void) | undefined;
  #reject: ((error: Error) => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => this.#onData(String(chunk)));
    socket.on("error", (error) => this.#reject?.(error));
    socket.on("close", () =>
      this.#reject?.(new Error("the server closed the connection in the middle of an exchange")),
    );
  }

  static async open(url: URL): Promise<HttpConnection> {
    const socket = connect(Number(url.port), url.hostname);
    await once(socket, "connect");
    return new HttpConnection(socket);
  }

  /** A server ends connections that are idle for long. */
  get isClosed(): boolean {
    return this.#socket.destroyed;
  }

  exchange(request: string): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#reject = undefined;
    this.#socket.destroy();
  }

  #onData(chunk: string): void {
    this.#received += chunk;
    const answer = parseAnswer(this.#received);
    if (answer === undefined) return;
    this.#received = "";
    const resolve = this.#resolve;
    this.#resolve = undefined;
    this.#reject = undefined;
    resolve?.(answer);
  }
}

/** The value of a header in the head of an answer. */
export function headerOf(head: string, name: string): string | undefined {
  const start = head.toLowerCase().indexOf(`\r\n${name}:`);
  if (start === -1) return undefined;
  const from = start + name.length + 3;
  const end = head.indexOf("\r\n", from);
  return head.slice(from, end === -1 ? undefined : end).trim();
}

/** Undefined while the answer is not complete. */
function parseAnswer(text: string): HttpAnswer | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1) return undefined;
  const head = text.slice(0, end);
  const status = Number(head.slice(9, 12));
  const rest = text.slice(end + 4);
  const length = headerOf(head, "content-length");
  if (length !== undefined) return rest.length >= Number(length) ? { status, head, body: rest } : undefined;
  if (headerOf(head, "transfer-encoding") === "chunked") {
    return rest.endsWith("0\r\n\r\n") ? { status, head, body: joinChunks(rest) } : undefined;
  }
  return { status, head, body: "" };
}

function joinChunks(text: string): string {
  let body = "";
  let at = 0;
  for (;;) {
    const lineEnd = text.indexOf("\r\n", at);
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    if (!(size > 0)) return body;
    body += text.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 2 + size + 2;
  }
}
