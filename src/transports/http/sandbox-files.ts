import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Principal } from "../../auth/principal.ts";
import { byteRange } from "../../capabilities/byte-range.ts";
import { OwlError, toOwlError } from "../../errors/owl-error.ts";
import type { Mcp } from "../../protocol/mcp.ts";
import { type HttpExchange, sendError, sendJson } from "./exchange-io.ts";
import type { RequestTarget } from "./request-target.ts";

/** What this door needs of sandboxes. */
export interface FileDoor {
  /** Throws as for an unknown sandbox when it is not the principal's own. */
  open(principal: Principal, id: string): Promise<OpenFiles>;
}

interface OpenFiles {
  readonly name: string;
  readonly wasCreated: boolean;
  readonly maxBytes: number;
  read(path: string): Promise<{
    readonly sizeBytes: number;
    bytes(start: number, end: number): AsyncIterable<Uint8Array>;
  }>;
  write(path: string, chunks: AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number; isNew: boolean }>;
  release(): void;
}

export interface SandboxFilesOptions {
  readonly mcp: Mcp;
  readonly door: FileDoor;
}

export const FILE_PATH: RegExp = /^\/api\/sandboxes\/([^/]+)\/files\/(.*)$/s;

/** A client that takes or sends nothing for so long would keep the sandbox busy for ever. */
const STALL_MS = 60_000;

/** Whatever a file holds, a browser must not run it as a page of this server. */
const FILE_HEADERS = {
  "content-type": "application/octet-stream",
  "content-disposition": "attachment",
  "content-security-policy": "sandbox",
  "x-content-type-options": "nosniff",
  "cache-control": "private, no-store",
  "accept-ranges": "bytes",
} as const;

const STATUS_BY_REASON: ReadonlyMap<unknown, number> = new Map([
  ["not_found", 404],
  ["outside_workspace", 403],
  ["permission_denied", 403],
  ["not_a_file", 409],
  ["not_a_directory", 409],
  ["changed", 409],
  ["disk_full", 507],
  ["sandbox_ended", 503],
  ["invalid_params", 400],
  ["range", 416],
]);

/** `GET` and `PUT /api/sandboxes/{id}/files/{path}`: an owner's files, streamed. */
export class SandboxFilesEndpoint {
  readonly #options: SandboxFilesOptions;

  constructor(options: SandboxFilesOptions) {
    this.#options = options;
  }

  get(exchange: HttpExchange, target: RequestTarget): Promise<void> {
    return this.#serve(exchange, target, (files, path) => sendFile(exchange, files, path));
  }

  put(exchange: HttpExchange, target: RequestTarget): Promise<void> {
    return this.#serve(exchange, target, (files, path) => receiveFile(exchange, files, path));
  }

  async #serve(
    exchange: HttpExchange,
    target: RequestTarget,
    act: (files: OpenFiles, path: string) => Promise<number>,
  ): Promise<void> {
    const { request, response, principal, traceId } = exchange;
    const { mcp, door } = this.#options;
    const startMs = performance.now();
    const log = (facts: Readonly<Record<string, unknown>>): void =>
      mcp.logger.info("sandbox file", {
        trace_id: traceId,
        principal: principal.id,
        method: request.method,
        duration_ms: Math.round(performance.now() - startMs),
        ...facts,
      });
    response.setTimeout(STALL_MS, () => response.destroy());
    try {
      const { id, path } = readFilePath(target.path);
      const files = await door.open(principal, id);
      try {
        const bytes = await act(files, path);
        log({ sandbox: files.name, path, bytes, outcome: "ok" });
      } finally {
        files.release();
      }
    } catch (thrown) {
      if (response.destroyed || (request.destroyed && !request.complete)) return log({ outcome: "client gone" });
      const error = toOwlError(thrown);
      if (error.kind === "internal") throw error;
      log({ outcome: error.kind, reason: error.message });
      this.#refuse(exchange, error);
    }
  }

  #refuse({ request, response, traceId }: HttpExchange, error: OwlError): void {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const status = error.kind === "tool_failure" ? STATUS_BY_REASON.get(error.facts["reason"]) : undefined;
    const { withStack } = this.#options.mcp;
    sendError(response, error, { traceId, withStack, ...(status !== undefined && { status }) });
    // Many clients read the answer only after the last byte of their body: the rest is taken and thrown away.
    request.resume();
  }
}

async function sendFile({ request, response }: HttpExchange, files: OpenFiles, path: string): Promise<number> {
  const file = await files.read(path);
  const { sizeBytes } = file;
  // There is nothing to compare If-Range with, so that it never matches.
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
  response.writeHead(range === undefined ? 200 : 206, {
    ...FILE_HEADERS,
    "content-length": end - start,
    ...(range !== undefined && { "content-range": `bytes ${start}-${end - 1}/${sizeBytes}` }),
  });
  await pipeline(Readable.from(file.bytes(start, end), { objectMode: false }), response);
  return end - start;
}

async function receiveFile({ request, response }: HttpExchange, files: OpenFiles, path: string): Promise<number> {
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
  // Leaving the loop early must not close the connection: the answer goes over it.
  const body: AsyncIterable<Buffer> = request.iterator({ destroyOnReturn: false });
  const { sizeBytes, isNew } = await files.write(path, body);
  const answer = { path, size_bytes: sizeBytes, created: isNew, session_created: files.wasCreated };
  sendJson(response, isNew ? 201 : 200, answer);
  return sizeBytes;
}

/**
 * Decodes once, part by part. What could mean two things to two readers is refused here: an encoded slash, `.`, `..`
 * and empty parts. Whether the rest leads out of the workspace, by a link, is for the guest to see.
 */
function readFilePath(target: string): { readonly id: string; readonly path: string } {
  const [, id = "", encoded = ""] = FILE_PATH.exec(target) ?? [];
  const parts = encoded.split("/").map(decodePart);
  if (parts.some((part) => part === "" || part === "." || part === ".." || /[/\0]/.test(part)))
    throw badPath("it has a part that is empty, . or .., or that holds a slash or a NUL");
  return { id, path: parts.join("/") };
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw badPath("it is no percent-encoded UTF-8");
  }
}

function badPath(reason: string): OwlError {
  return new OwlError("invalid_request", `the path of the file cannot be used: ${reason}`, {
    hint: "name a file relative to the workspace, such as /api/sandboxes/ID/files/data/table.csv",
  });
}
