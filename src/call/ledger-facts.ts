import { type ResourceContents, isImmutable } from "../capability/content.ts";
import type { ErrorKind } from "../errors/kinds.ts";
import { isOwlError, toOwlError } from "../errors/owl-error.ts";
import type { LedgerDecision, LedgerEntry, LedgerOutcome } from "../governance/ledger/ledger.ts";
import { isSessionId, sessionDigest } from "../telemetry/redact.ts";
import { CallSuspended } from "./call.ts";

export interface LedgerVerdict {
  readonly outcome: LedgerOutcome;
  readonly errorKind: string | undefined;
  readonly decision: LedgerDecision;
  readonly rule: string | undefined;
  /** The policy that refused the call, when it is not the one that was in force when the call arrived. */
  readonly revision?: string | undefined;
  readonly result: unknown;
}

/** Kinds of errors that refuse a call before it runs; all others are outcomes of a run. */
const REFUSALS: ReadonlySet<ErrorKind> = new Set(["governance_denied", "store_unavailable", "paused"]);

/** The verdict on a call that governance did not admit. */
export function verdictOfRefusal(thrown: unknown): LedgerVerdict {
  const { kind, message, facts } = toOwlError(thrown, "execution_error");
  const rule = textOf(facts["rule"]);
  if (!REFUSALS.has(kind)) return { ...verdictOf(thrown, undefined), rule };
  const result = { error: message };
  const revision = textOf(facts["policy"]);
  return { outcome: "refused", errorKind: kind, decision: "deny", rule: rule ?? "store", revision, result };
}

/** The verdict on a call that ran, for the ledger. Whatever its error, it was allowed, and is charged. */
export function verdictOf(thrown: unknown, value: unknown): LedgerVerdict {
  if (thrown === undefined) {
    const isError = isObject(value) && value["isError"] === true;
    const errorKind = isError ? "tool_failure" : undefined;
    return { outcome: isError ? "failed" : "ok", errorKind, decision: "allow", rule: undefined, result: value };
  }
  if (thrown instanceof CallSuspended)
    return { outcome: "suspended", errorKind: undefined, decision: "allow", rule: undefined, result: undefined };
  const { kind, message } = toOwlError(thrown, "execution_error");
  const outcome = outcomeOf(thrown);
  return { outcome, errorKind: kind, decision: "allow", rule: undefined, result: { error: message } };
}

function textOf(fact: unknown): string | undefined {
  return typeof fact === "string" ? fact : undefined;
}

function outcomeOf(thrown: unknown): LedgerOutcome {
  if (!isOwlError(thrown)) return "failed";
  if (thrown.kind === "cancelled") return "cancelled";
  return thrown.kind === "timeout" ? "timeout" : "failed";
}

const records = new WeakMap<object, unknown>();

/**
 * The digest in `_meta` identifies the bytes of a skill that were read; a part of its text would say less and fill the
 * ledger.
 */
export function contentsByDigest(contents: readonly ResourceContents[]): unknown {
  return contents.map((content) => records.get(content) ?? recordOf(content));
}

function recordOf(content: ResourceContents): unknown {
  const { uri, mimeType, _meta } = content;
  const record = { uri, mimeType, _meta };
  if (isImmutable(content)) records.set(content, record);
  return record;
}

const NO_SANDBOX = { sandbox: undefined };

/**
 * Identifies the sandbox of a call by the digest of its id. A value that cannot be an id stays in the record: it gives
 * no access, and removing it would let callers choose what the record does not show.
 */
export function sandboxFacts(args: unknown, value: unknown): Pick<LedgerEntry, "sandbox" | "secrets"> {
  const structured = isObject(value) ? value["structuredContent"] : undefined;
  const id = sessionIdIn(structured) ?? sessionIdIn(value) ?? sessionIdIn(args);
  if (id !== undefined) return { sandbox: sessionDigest(id), ...(isSessionId(id) && { secrets: [id] }) };
  const written = sessionIdInUri(args);
  return written === undefined ? NO_SANDBOX : factsOfWritten(written);
}

/** In a URI an id may be percent-encoded, and gives access to the sandbox all the same. */
function factsOfWritten(written: string): Pick<LedgerEntry, "sandbox" | "secrets"> {
  const id = percentDecoded(written);
  return { sandbox: sessionDigest(id), ...(isSessionId(id) && { secrets: id === written ? [id] : [written, id] }) };
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // An invalid percent-encoding is not an id.
    return text;
  }
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
