import { Readable } from "node:stream";
import { finished, pipeline } from "node:stream/promises";
import { byteRange } from "../../capability/content.ts";
import type { OpenFiles } from "../../call/workspace-files.ts";
import { OwlError } from "../../errors/owl-error.ts";
import { type HttpExchange, sendJson } from "./exchange-io.ts";
import { steadyBody } from "./read-body.ts";
import { createHash } from "node:crypto";

/** The result of a transfer before the client has the whole response. */
export interface FileAnswer {
  readonly bytes: number;
  /** Sends the rest of the response. */
  readonly finish: () => Promise<void>;
}

/** A client that reads nothing for this time is disconnected, because the transfer keeps the sandbox in use. */
const UNREAD_MS = 60_000;

/** A browser must not render any file as a page of this server. */
const FILE_HEADERS = {
  "content-type": "application/octet-stream",
  "content-disposition": "attachment",
  "content-security-policy": "sandbox",
  "x-content-type-options": "nosniff",
  "cache-control": "private, no-store",
  "accept-ranges": "bytes",
} as const;

interface Arrival {
  readonly files: OpenFiles;
  readonly path: string;
  readonly stallMs: number;
  /** The digest that the client announced. A body with another digest is not written. */
  readonly sha256: string | undefined;
}

/** Sends all but the last chunk. Without the last chunk the client cannot take the response for complete. */
export async function sendFile(
  { request, response }: HttpExchange,
  files: OpenFiles,
  path: string,
): Promise<FileAnswer> {
  response.setTimeout(UNREAD_MS, () => response.destroy());
  const file = await files.read(path);
  const { sizeBytes } = file;
  // Files have no validator, so `If-Range` never matches and the Range header is ignored.
  const asked = request.headers["if-range"] === undefined ? request.headers.range : undefined;
  const range = byteRange(asked, sizeBytes);
  if (range === "unsatisfiable") {
    response.setHeader("content-range", `bytes */${sizeBytes}`);
    throw new OwlError("tool_failure", `the file has ${sizeBytes} bytes, and none of them are in the range`, {
      facts: { reason: "range" },
      hint: "ask for a range inside the file, or leave the Range header out",
    });
  }
  const { start, end } = range ?? { start: 0, end: sizeBytes };
  const begin = (): void => {
    if (response.headersSent) return;
    response.writeHead(range === undefined ? 200 : 206, {
      ...FILE_HEADERS,
      "content-length": end - start,
      ...(range !== undefined && { "content-range": `bytes ${start}-${end - 1}/${sizeBytes}` }),
    });
  };
  const isHead = request.method === "HEAD";
  const rest = new HeldBack();
  if (!isHead) {
    const pieces = Readable.from(rest.allBefore(file.bytes(start, end), begin), { objectMode: false });
    await pipeline(pieces, response, { end: false });
  }
  const finish = async (): Promise<void> => {
    begin();
    response.end(rest.last);
    await finished(response);
  };
  return { bytes: isHead ? 0 : end - start, finish };
}

/** Holds back the last chunk of a file while the chunks before it are sent. */
class HeldBack {
  last: Uint8Array | undefined;

  async *allBefore(pieces: AsyncIterable<Uint8Array>, begin: () => void): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces) {
      const { last } = this;
      this.last = piece;
      if (last === undefined) continue;
      begin();
      yield last;
    }
  }
}

export async function receiveFile(
  { request, response }: HttpExchange,
  { files, path, stallMs, sha256 }: Arrival,
): Promise<FileAnswer> {
  const { "content-range": contentRange, "content-encoding": encoding, "content-length": length } = request.headers;
  if (contentRange !== undefined)
    throw new OwlError("invalid_request", "a file is replaced whole: Content-Range cannot be served", {
      hint: "send the whole file without Content-Range",
    });
  if (encoding !== undefined && encoding !== "identity")
    throw new OwlError("unsupported_media_type", `the encoding ${JSON.stringify(encoding)} is not decoded here`, {
      hint: "send the file's own bytes without Content-Encoding",
    });
  if (Number(length ?? 0) > files.maxBytes)
    throw new OwlError("tool_failure", `the sandbox's disk quota is ${files.maxBytes} bytes, and the file is larger`, {
      facts: { reason: "disk_full" },
      hint: "send less, or make a sandbox of a larger flavor with sandbox_create",
    });
  const body = steadyBody(request, stallMs);
  const { sizeBytes, isNew } = await files.write(path, sha256 === undefined ? body : bytesOfDigest(body, sha256));
  const answer = { path, size_bytes: sizeBytes, created: isNew, session_created: files.wasCreated };
  return { bytes: sizeBytes, finish: async () => sendJson(response, isNew ? 201 : 200, answer) };
}

/** `sha-256=:…:` with 32 bytes in base64. */
const SHA_256 = /^sha-256=:([A-Za-z0-9+/]{43}=):$/;

/**
 * The SHA-256 of `Content-Digest` (RFC 9530), in hexadecimal as `sha256sum` prints it. Undefined without the header.
 */
export function announcedSha256(header: string | readonly string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  const digests = header.toString().split(",");
  const base64 = digests.map((each) => SHA_256.exec(each.trim())?.[1]).findLast((found) => found !== undefined);
  if (base64 !== undefined) return Buffer.from(base64, "base64").toString("hex");
  throw new OwlError("invalid_request", "Content-Digest has no SHA-256 of the body", {
    hint: "write it as Content-Digest: sha-256=:BASE64:, or leave it out",
  });
}

/** Yields the same chunks. Throws at the end when they do not match the digest. */
export async function* bytesOfDigest(chunks: AsyncIterable<Uint8Array>, sha256: string): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  for await (const chunk of chunks) {
    hash.update(chunk);
    yield chunk;
  }
  const found = hash.digest("hex");
  if (found === sha256) return;
  throw new OwlError("invalid_request", `the body is not what Content-Digest says: its SHA-256 is ${found}`, {
    hint: "nothing was written; send the file with its own digest",
  });
}
