import { type Duplex, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Principal } from "../../auth/principal.ts";
import { byteRange } from "../../capabilities/byte-range.ts";
import { OwlError, toOwlError } from "../../errors/owl-error.ts";
import type { GovernedWork } from "../../pipeline/governed-call.ts";
import { operationSubject } from "../../pipeline/subjects.ts";
import { silentConversation } from "../../protocol/conversations/silent.ts";
import type { Mcp } from "../../protocol/mcp.ts";
import { PLAIN_VERSION } from "../../protocol/versions.ts";
import { type HttpExchange, lifeOf, sendError, sendJson } from "./exchange-io.ts";
import { retryHeader } from "./quota-headers.ts";
import type { RequestTarget } from "./request-target.ts";
import { steadyBody } from "./steady-body.ts";

/** What this door needs of sandboxes. */
export interface FileDoor {
  /** Throws as for an unknown sandbox when it is not the principal's own. */
  open(principal: Principal, id: string): Promise<OpenFiles>;
  /** The same, and throws as for an unknown one when it has ended: there is nothing to read in a new one. */
  openLive(principal: Principal, id: string): Promise<OpenFiles>;
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
  /** A client that is silent for so long in the middle of its file is cut off. */
  readonly stallMs: number;
}

export const FILE_PATH: RegExp = /^\/api\/sandboxes\/([^/]+)\/files\/(.*)$/s;

/** A client that takes nothing for so long would keep the sandbox busy for ever. */
const UNREAD_MS = 60_000;

/** Whatever a file holds, a browser must not run it as a page of this server. */
const FILE_HEADERS = {
  "content-type": "application/octet-stream",
  "content-disposition": "attachment",
  "content-security-policy": "sandbox",
  "x-content-type-options": "nosniff",
  "cache-control": "private, no-store",
  "accept-ranges": "bytes",
} as const;

const STALLED = 408;

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
  ["stalled", STALLED],
  ["range", 416],
]);

/** `GET`, `HEAD` and `PUT /api/sandboxes/{id}/files/{path}`: an owner's files, streamed. */
export class SandboxFilesEndpoint {
  readonly #options: SandboxFilesOptions;
  readonly #receiving = new WeakSet<Duplex>();

  constructor(options: SandboxFilesOptions) {
    this.#options = options;
  }

  /** Whether a file is coming in here: then its silences are limited, and not the time that it takes. */
  isReceiving(socket: Duplex): boolean {
    return this.#receiving.has(socket);
  }

  get(exchange: HttpExchange, target: RequestTarget): Promise<void> {
    const { door } = this.#options;
    return this.#serve(exchange, target, {
      open: (id) => door.openLive(exchange.principal, id),
      act: (files, path) => sendFile(exchange, files, path),
    });
  }

  async put(exchange: HttpExchange, target: RequestTarget): Promise<void> {
    const { door, stallMs } = this.#options;
    const { socket } = exchange.request;
    this.#receiving.add(socket);
    try {
      await this.#serve(exchange, target, {
        open: (id) => door.open(exchange.principal, id),
        act: (files, path) => receiveFile(exchange, { files, path, stallMs }),
      });
    } finally {
      this.#receiving.delete(socket);
    }
  }

  async #serve(exchange: HttpExchange, target: RequestTarget, { open, act }: Work): Promise<void> {
    const { request, response, principal, traceId } = exchange;
    const { mcp } = this.#options;
    const startMs = performance.now();
    const log = (facts: Readonly<Record<string, unknown>>): void =>
      mcp.logger.info("sandbox file", {
        trace_id: traceId,
        principal: principal.id,
        method: request.method,
        duration_ms: Math.round(performance.now() - startMs),
        ...facts,
      });
    try {
      const { id, path } = readFilePath(target.path);
      await mcp.pipeline.govern({
        ...fileWork(request.method === "PUT" ? "file_write" : "file_read", { id, path }, exchange, mcp),
        perform: async () => {
          const files = await open(id);
          try {
            const bytes = await act(files, path);
            log({ sandbox: files.name, path, bytes, outcome: "ok" });
            return { bytes };
          } finally {
            files.release();
          }
        },
      });
    } catch (thrown) {
      if (response.destroyed || (request.destroyed && !request.complete)) return log({ outcome: "client gone" });
      const error = toOwlError(thrown);
      if (error.kind === "internal") throw error;
      log({ outcome: error.kind, reason: error.message });
      this.#refuse(exchange, error);
    }
  }

  #refuse({ request, response, traceId }: HttpExchange, error: OwlError): void {
    const retryAfter = error.kind === "governance_denied" ? error.facts["retry_after"] : undefined;
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const status =
      retryAfter !== undefined
        ? 429
        : error.kind === "tool_failure"
          ? STATUS_BY_REASON.get(error.facts["reason"])
          : undefined;
    const { withStack } = this.#options.mcp;
    // Many clients read the answer only after the last byte of their body: the rest is taken and thrown away.
    const isStalled = status === STALLED;
    const headers = { ...retryHeader(retryAfter), ...(isStalled && { connection: "close" }) };
    sendError(response, error, { traceId, withStack, headers, ...(status !== undefined && { status }) });
    if (!request.complete && !isStalled) this.#drain(request);
  }

  /** For as long as a whole request may take: nobody may go on sending for ever what is not wanted. */
  #drain(request: HttpExchange["request"]): void {
    const timer = setTimeout(() => request.destroy(), this.#options.stallMs);
    timer.unref();
    request.once("close", () => clearTimeout(timer)).resume();
  }
}

interface Work {
  readonly open: (id: string) => Promise<OpenFiles>;
  readonly act: (files: OpenFiles, path: string) => Promise<number>;
}

interface Arrival {
  readonly files: OpenFiles;
  readonly path: string;
  readonly stallMs: number;
}

async function sendFile({ request, response }: HttpExchange, files: OpenFiles, path: string): Promise<number> {
  response.setTimeout(UNREAD_MS, () => response.destroy());
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
  if (request.method === "HEAD") {
    response.end();
    return 0;
  }
  await pipeline(Readable.from(file.bytes(start, end), { objectMode: false }), response);
  return end - start;
}

async function receiveFile({ request, response }: HttpExchange, { files, path, stallMs }: Arrival): Promise<number> {
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
  const { sizeBytes, isNew } = await files.write(path, steadyBody(request, stallMs));
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

/** This door does what two tools do, so it is governed as they are. */
function fileWork(
  operation: "file_read" | "file_write",
  { id, path }: { readonly id: string; readonly path: string },
  { principal, label, traceId, response }: HttpExchange,
  { changes }: Mcp,
): Omit<GovernedWork<unknown, unknown>, "perform"> {
  const args = { session_id: id, path };
  const caller = { principal, label, transport: "http", protocolVersion: PLAIN_VERSION, sessionId: undefined } as const;
  return {
    kind: "tool",
    subject: operationSubject(operation, "workspace"),
    calledAs: `${operation === "file_write" ? "PUT" : "GET"} /api/sandboxes`,
    args,
    call: { caller, traceId, life: lifeOf(response), conversation: silentConversation(changes) },
    check: () => args,
  };
}
