import type { Lease } from "../limit-store.ts";
import { toWire } from "./limit-answers.ts";
import type { Booking } from "./open-leases.ts";

/** A batch that may have been run. */
export type Tried = readonly [holder: string, seq: number];

/** A call that has ended, until the engine knows. */
export interface Unbooked {
  readonly lease: Lease;
  readonly costMicros: number;
  readonly tried: readonly Tried[];
  /** Where what it cost is put on file as well. */
  readonly booking: Booking | undefined;
  /** Whether that is done, and it only remains to be counted, or not, where it has to be. */
  readonly isLast: boolean;
}

/** As the script reads it. */
export function settlementToWire(unbooked: Unbooked): Readonly<Record<string, unknown>> {
  const { lease, costMicros, tried, booking, isLast } = unbooked;
  const { counters, month, reserveMicros, holder = "" } = lease;
  return {
    op: "settle",
    counters: counters.map(toWire),
    month,
    reserve: reserveMicros,
    cost: costMicros,
    holder,
    tried,
    ...(booking !== undefined && { epoch: isLast ? booking.paidIn : booking.epoch }),
    ...(isLast && { is_last: true, given: booking?.givenIn }),
  };
}
