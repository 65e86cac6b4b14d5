import type { ResourceContents } from "../capabilities/content.ts";
import { isSteady } from "../capabilities/steady-contents.ts";
import type { ErrorKind } from "../errors/kinds.ts";
import { isOwlError, toOwlError } from "../errors/owl-error.ts";
import type { LedgerDecision, LedgerEntry, LedgerOutcome } from "../ledger/ledger.ts";
import { sessionDigest } from "../telemetry/session-digest.ts";
import { CallSuspended } from "./call.ts";

export interface LedgerVerdict {
  readonly outcome: LedgerOutcome;
  readonly errorKind: string | undefined;
  readonly decision: LedgerDecision;
  readonly rule: string | undefined;
  readonly result: unknown;
}

/** Kinds of errors that say no to a call; all others are what became of it. */
export const REFUSALS: ReadonlySet<ErrorKind> = new Set(["governance_denied", "store_unavailable", "paused"]);

/** How a call ended, as the ledger says it. */
export function verdictOf(thrown: unknown, value: unknown): LedgerVerdict {
  if (thrown === undefined) {
    const isError = isObject(value) && value["isError"] === true;
    const errorKind = isError ? "tool_failure" : undefined;
    return { outcome: isError ? "failed" : "ok", errorKind, decision: "allow", rule: undefined, result: value };
  }
  if (thrown instanceof CallSuspended)
    return { outcome: "suspended", errorKind: undefined, decision: "allow", rule: undefined, result: undefined };
  const { kind, message, facts } = toOwlError(thrown, "execution_error");
  const isRefused = REFUSALS.has(kind);
  const rule = isRefused ? (typeof facts["rule"] === "string" ? facts["rule"] : "store") : undefined;
  return {
    outcome: isRefused ? "refused" : outcomeOf(thrown),
    errorKind: kind,
    decision: isRefused ? "deny" : "allow",
    rule,
    result: { error: message },
  };
}

function outcomeOf(thrown: unknown): LedgerOutcome {
  if (!isOwlError(thrown)) return "failed";
  if (thrown.kind === "cancelled") return "cancelled";
  return thrown.kind === "timeout" ? "timeout" : "failed";
}

const records = new WeakMap<object, unknown>();

/** Which bytes of a skill were read is said by its digest; a part of its text would say less and fill the ledger. */
export function contentsByDigest(contents: readonly ResourceContents[]): unknown {
  return contents.map((content) => records.get(content) ?? recordOf(content));
}

function recordOf(content: ResourceContents): unknown {
  const { uri, mimeType, _meta } = content;
  const record = { uri, mimeType, _meta };
  if (isSteady(content)) records.set(content, record);
  return record;
}

const NO_SANDBOX = { sandbox: undefined };

/** Which sandbox a call was about, by the digest of its id. */
export function sandboxFacts(args: unknown, value: unknown): Pick<LedgerEntry, "sandbox" | "secrets"> {
  const structured = isObject(value) ? value["structuredContent"] : undefined;
  const id = sessionIdIn(structured) ?? sessionIdIn(value) ?? sessionIdIn(args) ?? sessionIdInUri(args);
  if (id === undefined) return NO_SANDBOX;
  return { sandbox: sessionDigest(id), secrets: [id] };
}

function sessionIdInUri(args: unknown): string | undefined {
  const uri = isObject(args) ? args["uri"] : undefined;
  return typeof uri === "string" ? /^sandbox:\/\/([^/]+)/.exec(uri)?.[1] : undefined;
}

function sessionIdIn(value: unknown): string | undefined {
  const id = isObject(value) ? value["session_id"] : undefined;
  return typeof id === "string" && id !== "" ? id : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
