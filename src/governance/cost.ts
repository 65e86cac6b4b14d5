import { toMicros } from "./policy/terms.ts";
import type { SubjectPrice } from "./subject.ts";

/** How a call ran, as far as it costs something. */
export interface Consumption {
  readonly durationMs: number;
  readonly egressBytes: number;
  /** What the capability itself reported, in units. */
  readonly charged: number;
  /** A call that ended with a question to its client comes again. */
  readonly isSuspended: boolean;
  /** Not where nothing has begun, and not where an earlier round of the same call has paid it. */
  readonly isFixedDue: boolean;
  /** It was ended by force, or nobody could: what else it cost is not known. */
  readonly isLost: boolean;
}

const MEGABYTE = 1_000_000;
/** Ten million units. Whatever a handler reports, sums of calls stay numbers that every store can hold. */
const MAX_COST_MICROS = 1e13;

export function costOf({ fixed, perSecond, perEgressMb }: SubjectPrice, consumption: Consumption): number {
  const { durationMs, egressBytes, charged, isFixedDue } = consumption;
  const running = (perSecond * durationMs) / 1000 + (perEgressMb * egressBytes) / MEGABYTE;
  return Math.min(toMicros((isFixedDue ? fixed : 0) + running + charged), MAX_COST_MICROS);
}
