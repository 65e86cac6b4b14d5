import type { IncomingMessage } from "node:http";
import { OwlError } from "../../errors/owl-error.ts";

/** The whole body as text. Rejects a body of another type or size before it is read, and invalid UTF-8 afterwards. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<string> {
  assertJson(request.headers["content-type"]);
  return decodeUtf8(await readBytes(request, maxBytes));
}

export function readBytes(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers["content-length"] ?? 0) > maxBytes) return reject(tooLarge(maxBytes));
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) return void chunks.push(chunk);
      request.pause();
      request.removeAllListeners("data");
      reject(tooLarge(maxBytes));
    });
    const onClose = (): void => reject(new OwlError("cancelled", "the client hung up before its request was read"));
    request.once("close", onClose);
    request.once("end", () => {
      request.off("close", onClose);
      const [first] = chunks;
      resolve(chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks));
    });
  });
}

function tooLarge(maxBytes: number): OwlError {
  return new OwlError("too_large", `the body is larger than ${maxBytes} bytes`, { facts: { limit: maxBytes } });
}

/**
 * Browsers send forms and text to other origins without a preflight, but not JSON. Requests without a content type are
 * accepted.
 */
function assertJson(contentType: string | undefined): void {
  if (contentType === undefined) return;
  const type = contentType.split(";", 1)[0]?.trim().toLowerCase();
  if (type === "application/json") return;
  throw new OwlError(
    "unsupported_media_type",
    `the body must be application/json, not ${JSON.stringify(type?.slice(0, 64))}`,
  );
}

const strict = new TextDecoder("utf-8", { fatal: true });
const lenient = new TextDecoder("utf-8");

/** @throws OwlError (parse_error) with the position of the first invalid character. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return strict.decode(bytes);
  } catch {
    const position = Math.max(lenient.decode(bytes).indexOf("\uFFFD"), 0);
    throw new OwlError("parse_error", `the text is not valid UTF-8 at character ${position}`, { facts: { position } });
  }
}

/**
 * Yields the body without a limit on its total time. Rejects a client that sends nothing for `stallMs`. The time that
 * the reader takes for a chunk does not count.
 */
export async function* steadyBody(request: IncomingMessage, stallMs: number): AsyncGenerator<Buffer> {
  // Leaving the loop early must not close the connection: the response is sent over it.
  const chunks: AsyncIterator<Buffer> = request.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const next = await beforeStall(chunks.next(), stallMs);
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    // Not awaited: while the client is silent, `return` would wait for the pending read.
    chunks.return?.().catch(() => undefined);
  }
}

async function beforeStall<T>(chunk: Promise<T>, stallMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const stalled = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(stalledError(stallMs)), stallMs);
  });
  try {
    return await Promise.race([chunk, stalled]);
  } finally {
    clearTimeout(timer);
  }
}

function stalledError(stallMs: number): OwlError {
  return new OwlError("tool_failure", `nothing of the file came for ${stallMs / 1000} seconds`, {
    facts: { reason: "stalled" },
    hint: "send the file again without pauses, or raise http.requestTimeoutSeconds",
  });
}
