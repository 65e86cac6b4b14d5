import { OwlError } from "../../errors/owl-error.ts";
import { DECISIONS, type LedgerFilter, OUTCOMES, ROW_KINDS } from "./query.ts";

/** A filter as a person writes it: flags of a command, or the query of a URL. */
export interface FilterText {
  readonly client?: string | undefined;
  readonly label?: string | undefined;
  readonly tool?: string | undefined;
  readonly kind?: string | undefined;
  readonly decision?: string | undefined;
  readonly outcome?: string | undefined;
  readonly rule?: string | undefined;
  readonly trace?: string | undefined;
  readonly sandbox?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

export const FILTER_NAMES = [
  "client",
  "label",
  "tool",
  "kind",
  "decision",
  "outcome",
  "rule",
  "trace",
  "sandbox",
  "from",
  "to",
] as const satisfies readonly (keyof FilterText)[];

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** @throws OwlError `invalid_params` that names the wrong part, and what it may be. */
export function filterFromText(text: FilterText, now: number): LedgerFilter {
  const { client, label, tool, rule, trace, sandbox } = text;
  return {
    ...(client === undefined ? {} : { principal: client }),
    ...(label === undefined ? {} : { label }),
    ...(tool === undefined ? {} : { name: tool }),
    ...(rule === undefined ? {} : { rule }),
    ...(trace === undefined ? {} : { traceId: trace }),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(text.kind === undefined ? {} : { kind: oneOf("kind", text.kind, ROW_KINDS) }),
    ...(text.decision === undefined ? {} : { decision: oneOf("decision", text.decision, DECISIONS) }),
    ...(text.outcome === undefined ? {} : { outcome: oneOf("outcome", text.outcome, OUTCOMES) }),
    ...(text.from === undefined ? {} : { fromMs: timeFromText("from", text.from, now) }),
    ...(text.to === undefined ? {} : { toMs: timeFromText("to", text.to, now) }),
  };
}

/** `90s`, `15m`, `1h`, `7d`, `2w` before now, or a date with or without a time. */
function timeFromText(name: string, text: string, now: number): number {
  const [, amount = "", unit = ""] = /^(\d{1,9})([smhdw])$/.exec(text.trim()) ?? [];
  const unitMs = UNIT_MS[unit];
  if (unitMs !== undefined) return now - Number(amount) * unitMs;
  const time = /^\d{4}-\d{2}-\d{2}/.test(text.trim()) ? Date.parse(text.trim()) : Number.NaN;
  if (!Number.isNaN(time)) return time;
  throw wrong(
    name,
    text,
    "a time ago such as 90s, 15m, 1h, 7d or 2w, or a date such as 2026-07-28 or 2026-07-28T12:00:00Z",
  );
}

function oneOf<T extends string>(name: string, text: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === text);
  if (found !== undefined) return found;
  throw wrong(name, text, `one of ${choices.join(", ")}`);
}

function wrong(name: string, text: string, expected: string): OwlError {
  return new OwlError("invalid_params", `${name} is ${JSON.stringify(text.slice(0, 64))}, and must be ${expected}`);
}
