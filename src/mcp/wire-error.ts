import { ERROR_KINDS, type ErrorKind, type ErrorKindFacts } from "../errors/kinds.ts";
import type { OwlError } from "../errors/owl-error.ts";
import { quotaOfFailure } from "../governance/quota.ts";
import type { JsonRpcResponse, RequestId, WireErrorBody } from "./json-rpc.ts";
import { isModern } from "./versions.ts";

export interface WireOptions {
  readonly version: string;
  readonly traceId: string;
  /** Only in development mode: a stack shows an attacker the structure of the server. */
  readonly withStack: boolean;
}

/** The error as this revision's clients understand it; `data` is the same in all revisions. */
export function toWireError(error: OwlError, options: WireOptions): WireErrorBody {
  return { code: wireCode(error.kind, options.version), message: error.message, data: errorData(error, options) };
}

export function errorData(error: OwlError, { traceId, withStack }: WireOptions): Record<string, unknown> {
  const quota = quotaOfFailure(error);
  return {
    ...error.facts,
    kind: publicKind(error.kind),
    message: error.message,
    trace_id: traceId,
    retryable: error.retryable,
    hint: error.hint,
    ...(quota !== undefined && { quota }),
    ...(withStack && { stack: fullStack(error) }),
  };
}

export function wireCode(kind: ErrorKind, version: string): number {
  const facts: ErrorKindFacts = ERROR_KINDS[kind];
  return isModern(version) ? facts.modernCode : facts.code;
}

/** Whether this revision requires the failure as a result, which a model can read and repair. */
export function isToolError(kind: ErrorKind, version: string): boolean {
  switch (ERROR_KINDS[kind].toolError) {
    case "always":
      return true;
    case "since 2025-11-25":
      return version >= "2025-11-25";
    case "since 2026-07-28":
      return version >= "2026-07-28";
    default:
      return false;
  }
}

/** The error response to a request, or to a message without an id. Every error is sent in one. */
export function errorAnswer(id: RequestId | null, error: OwlError, options: WireOptions): JsonRpcResponse {
  return { jsonrpc: "2.0", id, error: toWireError(error, options) };
}

/** The kind of an error that the SDK has created. */
export function kindOfCode(code: number): ErrorKind {
  switch (code) {
    case -32700:
      return "parse_error";
    case -32600:
    case -32000:
      return "invalid_request";
    case -32601:
      return "method_not_found";
    case -32602:
      return "invalid_params";
    case -32020:
      return "header_mismatch";
    case -32021:
      return "missing_capability";
    case -32022:
      return "unsupported_version";
    default:
      return "internal";
  }
}

/**
 * Clients see arguments that fail the schema as `invalid_params`; the registry has a separate kind, since the eras
 * treat them differently.
 */
function publicKind(kind: ErrorKind): string {
  return kind === "invalid_arguments" ? "invalid_params" : kind;
}

function fullStack(error: OwlError): string {
  const cause = error.cause instanceof Error ? `\ncaused by ${error.cause.stack ?? error.cause.message}` : "";
  return `${error.stack ?? error.message}${cause}`;
}
