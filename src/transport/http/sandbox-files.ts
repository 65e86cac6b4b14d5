import type { Duplex } from "node:stream";
import { OwlError, toOwlError } from "../../errors/owl-error.ts";
import { quotaHeaders } from "../../governance/quota.ts";
import { UNAPPROVED_MESSAGE } from "../../governance/refusal.ts";
import type { GovernedWork } from "../../call/governed-work.ts";
import { silentConversation } from "../../mcp/conversations/silent.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import { PLAIN_VERSION } from "../../mcp/versions.ts";
import { type FileAnswer, receiveFile, sendFile, announcedSha256 } from "./file-answers.ts";
import { type HttpExchange, lifeOf, sendError } from "./exchange-io.ts";
import type { OpenFiles, WorkspaceFiles } from "../../call/workspace-files.ts";
import { refusalHeaders } from "./quota-headers.ts";
import type { RouteRequest } from "./route-table.ts";

export interface SandboxFilesOptions {
  readonly mcp: Mcp;
  readonly files: WorkspaceFiles;
  /** A client that sends nothing for this time during an upload is disconnected. */
  readonly stallMs: number;
}

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

/** `GET`, `HEAD` and `PUT /api/sandboxes/{id}/files/{path}`: the files of an owner's sandbox, streamed. */
export class SandboxFilesEndpoint {
  readonly #options: SandboxFilesOptions;
  readonly #receiving = new WeakSet<Duplex>();

  constructor(options: SandboxFilesOptions) {
    this.#options = options;
  }

  /** Whether an upload is in progress on this socket. Its pauses are limited instead of its total time. */
  isReceiving(socket: Duplex): boolean {
    return this.#receiving.has(socket);
  }

  get(exchange: HttpExchange, target: RouteRequest): Promise<void> {
    const { files } = this.#options;
    return this.#serve(exchange, target, {
      open: (id) => files.openLive(exchange.principal, id),
      act: (files, { path }) => sendFile(exchange, files, path),
    });
  }

  async put(exchange: HttpExchange, target: RouteRequest): Promise<void> {
    const { files, stallMs } = this.#options;
    const { socket } = exchange.request;
    this.#receiving.add(socket);
    try {
      await this.#serve(exchange, target, {
        open: (id) => files.open(exchange.principal, id),
        act: (files, { path, sha256 }) => receiveFile(exchange, { files, path, stallMs, sha256 }),
      });
    } finally {
      this.#receiving.delete(socket);
    }
  }

  async #serve(exchange: HttpExchange, target: RouteRequest, { open, act }: Work): Promise<void> {
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
      const file = namedFile(request, target.parts);
      const { id, path } = file;
      const { value } = await mcp.pipeline.govern({
        onAdmitted: (quota) => {
          for (const [name, text] of Object.entries(quotaHeaders(quota))) response.setHeader(name, text);
        },
        ...fileWork(request.method === "PUT" ? "file_write" : "file_read", file, exchange, mcp),
        perform: async () => {
          const files = await open(id);
          try {
            return { sandbox: files.name, ...(await act(files, file)) };
          } finally {
            files.release();
          }
        },
        toRecord: ({ bytes }) => ({ bytes }),
      });
      // The response is completed only after the ledger row is written.
      const { sandbox, bytes, finish } = value;
      await finish();
      log({ sandbox, path, bytes, outcome: "ok" });
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
    // Many clients read the response only after they have sent their whole body, so the rest of the body is read and
    // discarded.
    const isStalled = status === STALLED;
    const refusal = retryAfter === undefined ? {} : refusalHeaders(error.facts);
    const headers = { ...refusal, ...(isStalled && { connection: "close" }) };
    sendError(response, error, { traceId, withStack, headers, ...(status !== undefined && { status }) });
    if (!request.complete && !isStalled) this.#drain(request);
  }

  /** Discards the rest of the body, for a limited time. */
  #drain(request: HttpExchange["request"]): void {
    const timer = setTimeout(() => request.destroy(), this.#options.stallMs);
    timer.unref();
    request.once("close", () => clearTimeout(timer)).resume();
  }
}

interface Work {
  readonly open: (id: string) => Promise<OpenFiles>;
  readonly act: (files: OpenFiles, file: NamedFile) => Promise<FileAnswer>;
}

/** The file of a request, and the announced digest and size of an upload. */
interface NamedFile {
  readonly id: string;
  readonly path: string;
  readonly sha256: string | undefined;
  readonly sizeBytes: number | undefined;
}

function namedFile({ method, headers }: HttpExchange["request"], parts: readonly string[]): NamedFile {
  const sha256 = method === "PUT" ? announcedSha256(headers["content-digest"]) : undefined;
  const { "content-length": length } = headers;
  return { ...readFilePath(parts), sha256, sizeBytes: length === undefined ? undefined : Number(length) };
}

/**
 * Decodes the path once, part by part. Rejects ambiguous parts: an encoded slash, `.`, `..` and empty parts. The guest
 * checks whether the path leads out of the workspace by a symbolic link.
 */
function readFilePath([id = "", encoded = ""]: readonly string[]): { readonly id: string; readonly path: string } {
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

/** The endpoint does the same as two tools, so it is governed like them. */
function fileWork(
  operation: "file_read" | "file_write",
  { id, path, sha256, sizeBytes }: NamedFile,
  { principal, label, traceId, response }: HttpExchange,
  { changes, pipeline }: Mcp,
): Omit<GovernedWork<unknown, unknown>, "perform"> {
  const size = sizeBytes === undefined ? {} : { size_bytes: sizeBytes };
  const args = { session_id: id, path, ...(sha256 !== undefined && { content_sha256: sha256, ...size }) };
  const caller = { principal, label, transport: "http", protocolVersion: PLAIN_VERSION, sessionId: undefined } as const;
  return {
    kind: "tool",
    subject: pipeline.view.subjectOfOperation(operation, "workspace"),
    calledAs: `${operation === "file_write" ? "PUT" : "GET"} /api/sandboxes`,
    args,
    call: { caller, traceId, life: lifeOf(response), conversation: silentConversation(changes) },
    check: () => args,
    assertShown: (rule) => {
      if (operation === "file_write" && sha256 === undefined) throw unseenContent(rule);
    },
  };
}

/** An approval applies to one content, and the body is not read yet when the approval is requested. */
function unseenContent(rule: string): OwlError {
  return new OwlError("governance_denied", `${UNAPPROVED_MESSAGE}, and nothing says what is in the file`, {
    facts: { rule },
    hint: "send Content-Digest: sha-256=:BASE64: with it, or write it with the tool file_write",
  });
}
