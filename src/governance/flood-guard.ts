import { OwlError } from "../errors/owl-error.ts";

export interface FloodLimit {
  readonly perSecond: number;
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

const MAX_BUCKETS = 10_000;

/** Ten times the rate that the policy allows, so that it only rejects what the policy would reject anyway. */
export function floodLimitFor(callsPerMinute: number | undefined): FloodLimit | undefined {
  if (callsPerMinute === undefined) return undefined;
  return { perSecond: Math.max(50, (callsPerMinute * 10) / 60), burst: Math.max(1000, callsPerMinute * 2) };
}

/** A token bucket for each caller, in memory. It is checked before a message is read. */
export class FloodGuard {
  readonly #buckets = new Map<string, Bucket>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** @throws OwlError when the caller exceeds the limit. */
  check(caller: string, limit: FloodLimit | undefined): void {
    if (limit === undefined) return;
    const bucket = this.#bucketOf(caller, limit);
    if (bucket.tokens < 1) throw flooded(limit);
    bucket.tokens -= 1;
  }

  /** For transports that can wait: how long to stop reading from this caller. At most one second. */
  delayMs(caller: string, limit: FloodLimit | undefined): number {
    if (limit === undefined) return 0;
    const bucket = this.#bucketOf(caller, limit);
    const { perSecond } = limit;
    bucket.tokens = Math.max(bucket.tokens - 1, -perSecond);
    return bucket.tokens >= 0 ? 0 : Math.ceil((-bucket.tokens / perSecond) * 1000);
  }

  #bucketOf(caller: string, limit: FloodLimit): Bucket {
    const { perSecond, burst } = limit;
    const now = this.#nowMs();
    let bucket = this.#buckets.get(caller);
    if (bucket === undefined) {
      if (this.#buckets.size >= MAX_BUCKETS) this.#forgetFull(now, limit);
      bucket = { tokens: burst, atMs: now };
      this.#buckets.set(caller, bucket);
    }
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.atMs) / 1000) * perSecond);
    bucket.atMs = now;
    return bucket;
  }

  /** A full bucket is the same as a new one, so it need not be kept. */
  #forgetFull(now: number, { perSecond, burst }: FloodLimit): void {
    for (const [caller, { tokens, atMs }] of this.#buckets)
      if (tokens + ((now - atMs) / 1000) * perSecond >= burst) this.#buckets.delete(caller);
    if (this.#buckets.size >= MAX_BUCKETS) this.#buckets.clear();
  }
}

function flooded({ perSecond }: FloodLimit): OwlError {
  return new OwlError(
    "governance_denied",
    `more than ${Math.round(perSecond)} messages a second: they are not even read`,
    {
      facts: { rule: "flood", reason: "rate", limit: Math.round(perSecond), remaining: 0, retry_after: 1 },
      retryable: true,
      hint: "wait a second, and send less at a time",
    },
  );
}
