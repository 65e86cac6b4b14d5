import type { IncomingMessage } from "node:http";
import { OwlError } from "../../errors/owl-error.ts";
import { decodeUtf8 } from "../decode-utf8.ts";

/** The whole body as text. Refuses what is no JSON or too large before it is read, and what is no UTF-8 after. */
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

/** Browsers send forms and text across origins without asking; JSON they do not. Clients that say nothing are let in. */
function assertJson(contentType: string | undefined): void {
  if (contentType === undefined) return;
  const type = contentType.split(";", 1)[0]?.trim().toLowerCase();
  if (type === "application/json") return;
  throw new OwlError(
    "unsupported_media_type",
    `the body must be application/json, not ${JSON.stringify(type?.slice(0, 64))}`,
  );
}
