import type { Lease } from "../limit-store.ts";

/** What becomes of the money of a call that has ended. */
export interface Booking {
  /** The memory that was told to count it. */
  readonly epoch: string;
  /** Whether the places of the call are given back. */
  isReturned: boolean;
  /** The memory that has counted it and given back what was reserved. */
  givenIn: string | undefined;
  /** The memory in whose time it was put on file. */
  paidIn: string | undefined;
}

/** What the calls of this server hold, to be said again where it was forgotten. */
export class OpenLeases {
  readonly #leases = new Map<Lease, Booking | undefined>();

  add(lease: Lease): void {
    this.#leases.set(lease, undefined);
  }

  book(lease: Lease, epoch: string): Booking {
    const booking: Booking = { epoch, isReturned: false, givenIn: undefined, paidIn: undefined };
    this.#leases.set(lease, booking);
    return booking;
  }

  delete(lease: Lease): void {
    this.#leases.delete(lease);
  }

  /**
   * For each name of the script and each holder, the sum: what is said twice counts once. Money is held until it is on
   * file, wherever it is not counted.
   */
  toWire(epoch: string): readonly (readonly [name: string, holder: string, n: number])[] {
    const sums = new Map<string, [name: string, holder: string, n: number]>();
    const add = (name: string, holder: string, n: number): void => {
      const sum = sums.get(`${holder} ${name}`) ?? [name, holder, 0];
      sum[2] += n;
      sums.set(`${holder} ${name}`, sum);
    };
    for (const [{ counters, holder = "", month, reserveMicros }, booking] of this.#leases) {
      const isRunning = booking?.isReturned !== true;
      const holdsMoney = reserveMicros > 0 && (booking === undefined || booking.givenIn !== epoch);
      for (const { key, concurrency, budget } of counters) {
        if (concurrency !== undefined && isRunning) add(`r:${key}`, holder, 1);
        if (budget !== undefined && holdsMoney) add(`v:${month}:${key}`, holder, reserveMicros);
      }
    }
    return [...sums.values()];
  }
}
