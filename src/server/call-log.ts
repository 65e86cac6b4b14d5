import { isOwlError } from "../errors/owl-error.ts";
import type { Quota } from "../governance/quota.ts";
import { toBoundedJson } from "../ledger/bounded-json.ts";
import type { CallObserver, FinishedCall } from "../pipeline/call-observer.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Redactor } from "../telemetry/redact.ts";

/** Texts that say what a call is about and never hold a secret. */
const SHOWN = new Set(["path", "language", "template", "flavor", "mode", "encoding", "glob", "signal", "process_id"]);
const MAX_SHOWN_CHARS = 200;
const MAX_PARAMETERS = 50;
const MICROS = 1_000_000;

/** The bounds of the ledger, too: what is redacted and cut there is redacted and cut here. */
export const LOG_BOUNDS = { maxChars: 8000, maxTextChars: 4000 } as const;

/**
 * One line for each call: what, who, how long, at what cost, and what governance said. Contents of parameters and
 * results are in it at the level `debug` alone.
 */
export class CallLog implements CallObserver {
  readonly #logger: Logger;
  readonly #redactor: Redactor;

  constructor(logger: Logger, redactor: Redactor) {
    this.#logger = logger;
    this.#redactor = redactor;
  }

  finished(finished: FinishedCall): void {
    if (!this.#logger.shows("info")) return;
    const { entry, call, thrown } = finished;
    const { kind, name, outcome } = entry;
    const isOk = outcome === "ok";
    // One shape for all lines, with what is absent undefined: JSON leaves it out, and makes such objects fastest.
    const fields = {
      tool: kind === "tool" ? name : undefined,
      name: kind === "tool" ? undefined : name,
      called_as: entry.calledAs === name ? undefined : entry.calledAs,
      duration_ms: entry.durationMs,
      outcome,
      error_kind: isOk ? undefined : entry.errorKind,
      reason: !isOk && isOwlError(thrown) ? thrown.message : undefined,
      parameters: shapeOf(entry.args),
      principal: entry.principal,
      label: entry.label,
      transport: entry.transport,
      request_id: call.requestId,
      trace_id: entry.traceId,
      decision: entry.decision,
      rule: entry.rule,
      remaining: remainingOf(finished.quota()),
      cost: entry.costMicros / MICROS,
      session: entry.sandbox,
    };
    this.#logger.info(
      `${kind} call`,
      this.#logger.shows("debug") ? { ...fields, ...this.#contents(finished) } : fields,
    );
  }

  #contents({ entry }: FinishedCall): Record<string, unknown> {
    return { params: this.#bounded(entry.args, entry.secrets), result: this.#bounded(entry.result, entry.secrets) };
  }

  #bounded(value: unknown, secrets: readonly string[] = []): unknown {
    const json = toBoundedJson(value, this.#redactor, LOG_BOUNDS);
    return JSON.parse(secrets.reduce((text, secret) => text.replaceAll(secret, "[redacted]"), json));
  }
}

/** Which parameters there were, without what they hold. */
function shapeOf(args: unknown): Record<string, unknown> {
  if (typeof args !== "object" || args === null) return {};
  const shape: Record<string, unknown> = {};
  let count = 0;
  for (const [name, value] of Object.entries(args)) {
    if (++count > MAX_PARAMETERS) break;
    shape[name] = shapeOfValue(name, value);
  }
  return shape;
}

function shapeOfValue(name: string, value: unknown): unknown {
  if (typeof value === "number" || typeof value === "boolean") return value;
  if (typeof value !== "string") return `[${Array.isArray(value) ? "array" : typeof value}]`;
  return SHOWN.has(name) ? value.slice(0, MAX_SHOWN_CHARS) : `[${value.length} characters]`;
}

function remainingOf(quota: Quota | undefined): Record<string, number> | undefined {
  if (quota === undefined) return undefined;
  const remaining: Record<string, number> = {};
  for (const [name, entry] of Object.entries(quota)) remaining[name] = entry.remaining;
  return remaining;
}
