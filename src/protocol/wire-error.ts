import { ERROR_KINDS, type ErrorKind, type ErrorKindFacts } from "../errors/kinds.ts";
import { OwlError } from "../errors/owl-error.ts";
import { quotaOfFailure } from "../governance/quota.ts";
import type { WireErrorBody } from "./json-rpc.ts";
import { isModern } from "./versions.ts";

export interface WireOptions {
  readonly version: string;
  readonly traceId: string;
  /** Only in development mode: a stack tells an attacker what the server is made of. */
  readonly withStack: boolean;
}

/** The error as this revision's clients understand it; `data` is the same in all of them. */
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

/** Whether this revision wants the failure as a result that a model can read and repair. */
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

/** Gives an error that the SDK made itself the same data as ours have. */
export function completeWireError(error: WireErrorBody, options: WireOptions): WireErrorBody {
  if (isObject(error.data) && typeof error.data["kind"] === "string") {
    const known = error.data["kind"];
    return isErrorKind(known) ? { ...error, code: wireCode(known, options.version) } : error;
  }
  const kind = kindOfCode(error.code);
  const facts = isObject(error.data) ? error.data : error.data === undefined ? {} : { detail: error.data };
  const { data } = toWireError(new OwlError(kind, error.message, { facts }), options);
  return { code: error.code, message: error.message, data };
}

function kindOfCode(code: number): ErrorKind {
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

/** Arguments that fail the schema are `invalid_params` to the reader; the registry tells them apart for the eras. */
function publicKind(kind: ErrorKind): string {
  return kind === "invalid_arguments" ? "invalid_params" : kind;
}

function isErrorKind(kind: string): kind is ErrorKind {
  return Object.hasOwn(ERROR_KINDS, kind);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function fullStack(error: OwlError): string {
  const cause = error.cause instanceof Error ? `\ncaused by ${error.cause.stack ?? error.cause.message}` : "";
  return `${error.stack ?? error.message}${cause}`;
}
