import { isOwlError } from "../errors/owl-error.ts";
import type { Quota } from "../governance/quota.ts";
import { toBoundedJson } from "../governance/ledger/bounded-json.ts";
import type { LedgerEntry } from "../governance/ledger/ledger.ts";
import type { CallObserver, FinishedCall } from "./governed-work.ts";
import { type Redactor, hiding, withoutTexts } from "../telemetry/redact.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Parameters whose text describes the call and never contains a secret. */
const SHOWN = new Set(["path", "language", "template", "flavor", "mode", "encoding", "glob", "signal", "process_id"]);
const MAX_SHOWN_CHARS = 200;
const MAX_PARAMETERS = 50;
const MICROS = 1_000_000;

/** The same bounds as the ledger's: what is redacted and cut there is redacted and cut here. */
export const LOG_BOUNDS = { maxChars: 8000, maxTextChars: 4000 } as const;

/**
 * Logs one line for each call: what was called, by whom, how long it took, what it cost, and what governance decided.
 * The contents of parameters and results are logged only at the level `debug`.
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
    const without = (text: string): string => withoutTexts(text, entry.secrets);
    // All lines have the same object shape, with absent fields undefined: JSON omits these, and serializes such objects
    // fastest.
    const fields = {
      tool: kind === "tool" ? name : undefined,
      name: kind === "tool" ? undefined : without(name),
      called_as: entry.calledAs === name ? undefined : without(entry.calledAs),
      duration_ms: entry.durationMs,
      outcome,
      error_kind: isOk ? undefined : entry.errorKind,
      reason: !isOk && isOwlError(thrown) ? without(thrown.message) : undefined,
      parameters: shapeOf(entry.args, without),
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
      sandbox: finished.sandbox?.name,
      container: finished.sandbox?.containerId,
    };
    this.#logger.info(
      `${kind} call`,
      this.#logger.shows("debug") ? { ...fields, ...this.#contents(finished) } : fields,
    );
  }

  ranOn({ kind, name, principal, traceId, durationMs, costMicros }: LedgerEntry): void {
    const facts = { principal, trace_id: traceId, duration_ms: durationMs, cost: costMicros / MICROS };
    this.#logger.warning(`a ${kind} call ran on after it was stopped, and has ended`, { name, ...facts });
  }

  #contents({ entry }: FinishedCall): Record<string, unknown> {
    const redactor = hiding(this.#redactor, entry.secrets);
    return { params: bounded(entry.args, redactor), result: bounded(entry.result, redactor) };
  }
}

function bounded(value: unknown, redactor: Redactor): unknown {
  return JSON.parse(toBoundedJson(value, redactor, LOG_BOUNDS));
}

/** Which parameters the call had, without the contents of their texts. */
function shapeOf(args: unknown, without: (text: string) => string): Record<string, unknown> {
  if (typeof args !== "object" || args === null) return {};
  const shape: Record<string, unknown> = {};
  let count = 0;
  for (const [name, value] of Object.entries(args)) {
    if (++count > MAX_PARAMETERS) break;
    const shown = shapeOfValue(name, value);
    shape[name] = typeof shown === "string" ? without(shown) : shown;
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
