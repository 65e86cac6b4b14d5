import { toMicros } from "./policy/terms.ts";
import type { SubjectPrice } from "./subject.ts";

/** How a call ran, as far as it costs something. */
export interface Consumption {
  readonly durationMs: number;
  readonly egressBytes: number;
  /** What the capability itself reported, in units. */
  readonly charged: number;
  /** A call that ended with a question to its client comes again: its fixed part is due when it has run. */
  readonly isSuspended: boolean;
  /** It was ended by force, or nobody could: what else it cost is not known. */
  readonly isLost: boolean;
}

const MEGABYTE = 1_000_000;
/** Ten million units. Whatever a handler reports, sums of calls stay numbers that every store can hold. */
const MAX_COST_MICROS = 1e13;

export function costOf({ fixed, perSecond, perEgressMb }: SubjectPrice, consumption: Consumption): number {
  const { durationMs, egressBytes, charged, isSuspended } = consumption;
  const running = (perSecond * durationMs) / 1000 + (perEgressMb * egressBytes) / MEGABYTE;
  return Math.min(toMicros((isSuspended ? 0 : fixed) + running + charged), MAX_COST_MICROS);
}
