import type { LimitName, Used } from "./store/governance-store.ts";
import { fromMicros, toMicros } from "./policy/terms.ts";
import type { SubjectPrice } from "./subject.ts";

export interface QuotaEntry {
  readonly limit: number;
  readonly remaining: number;
  /** Until a part of the limit is available again. */
  readonly reset_seconds?: number;
}

/** What the caller has left of each limit, as every response reports it. */
export type Quota = Readonly<Partial<Record<"per_minute" | "per_day" | "concurrency" | "budget", QuotaEntry>>>;

export const QUOTA_META_KEY = "owlclaw/quota";

const NAMES: Readonly<Record<LimitName, keyof Quota>> = {
  callsPerMinute: "per_minute",
  callsPerDay: "per_day",
  concurrency: "concurrency",
  monthlyBudget: "budget",
};

/** Of several counters of one kind, the one with the least left is reported. */
export function toQuota(used: readonly Used[], nowMs: number): Quota {
  const quota: Partial<Record<keyof Quota, QuotaEntry>> = {};
  for (const { name, limit, used: taken, resetsAtMs } of used) {
    const key = NAMES[name];
    const remaining = Math.max(0, limit - taken);
    const isMoney = name === "monthlyBudget";
    const left = isMoney ? fromMicros(remaining) : remaining;
    const known = quota[key];
    if (known !== undefined && left >= known.remaining) continue;
    const most = isMoney ? fromMicros(limit) : limit;
    quota[key] =
      resetsAtMs === undefined
        ? { limit: most, remaining: left }
        : { limit: most, remaining: left, reset_seconds: Math.max(0, Math.ceil((resetsAtMs - nowMs) / 1000)) };
  }
  return quota;
}

const quotas = new WeakMap<Error, Quota>();

/** Attaches the quota to an error, so that an error response can report it as results do. */
export function rememberQuota(thrown: unknown, used: readonly Used[]): void {
  if (used.length > 0 && thrown instanceof Error) quotas.set(thrown, toQuota(used, Date.now()));
}

/** The quota at the time of the error; `undefined` when the call was not counted. */
export function quotaOfFailure(error: Error): Quota | undefined {
  return quotas.get(error);
}

/** The fields of the IETF's draft on rate limit headers: whole seconds and whole calls. */
export function quotaHeaders({ per_minute: minute, per_day: day }: Quota): Record<string, string> {
  if (minute === undefined && day === undefined) return {};
  return {
    "ratelimit-policy": joined(minute && policyField("minute", 60, minute), day && policyField("day", 86_400, day)),
    ratelimit: joined(minute && stateField("minute", minute), day && stateField("day", day)),
  };
}

function policyField(name: string, windowSeconds: number, { limit }: QuotaEntry): string {
  return `"${name}";q=${limit};w=${windowSeconds}`;
}

function stateField(name: string, { remaining, reset_seconds: seconds }: QuotaEntry): string {
  return seconds === undefined ? `"${name}";r=${remaining}` : `"${name}";r=${remaining};t=${seconds}`;
}

function joined(first: string | undefined, second: string | undefined): string {
  return first === undefined || second === undefined ? (first ?? second ?? "") : `${first}, ${second}`;
}

/** What a call used, as far as it determines the cost. */
export interface Consumption {
  readonly durationMs: number;
  readonly egressBytes: number;
  /** What the capability itself reported, in units. */
  readonly charged: number;
  /** The call ended with a question to its client, and is repeated with the answer. */
  readonly isSuspended: boolean;
  /** False when the call did not begin to run, or when an earlier round of the same call has paid the fixed price. */
  readonly isFixedDue: boolean;
  /** The call was killed, or could not be stopped: the rest of its cost is not known. */
  readonly isLost: boolean;
}

const MEGABYTE = 1_000_000;
/** Ten million units. Bounds what a handler reports, so that every store can hold the sums. */
const MAX_COST_MICROS = 1e13;

export function costOf({ fixed, perSecond, perEgressMb }: SubjectPrice, consumption: Consumption): number {
  const { durationMs, egressBytes, charged, isFixedDue } = consumption;
  const running = (perSecond * durationMs) / 1000 + (perEgressMb * egressBytes) / MEGABYTE;
  return Math.min(toMicros((isFixedDue ? fixed : 0) + running + charged), MAX_COST_MICROS);
}
