import type { IncomingMessage } from "node:http";
import { OwlError } from "../../errors/owl-error.ts";
import { decodeUtf8 } from "../decode-utf8.ts";

/** The whole body as text. Refuses what is too large before it is read, and what is no UTF-8 after. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<string> {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const chunks: Buffer[] = [];
  let size = 0;
  const stream: AsyncIterable<Buffer> = request;
  for await (const chunk of stream) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  const [first] = chunks;
  return decodeUtf8(chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks));
}

function tooLarge(maxBytes: number): OwlError {
  return new OwlError("too_large", `the body is larger than ${maxBytes} bytes`, { facts: { limit: maxBytes } });
}
