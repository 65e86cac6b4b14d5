import { OwlError } from "../errors/owl-error.ts";

/** Mistakes that cost nothing: people paste the wrong thing. */
const FREE_FAILURES = 3;
const FIRST_WAIT_MS = 1000;
const MAX_WAIT_MS = 60_000;
const FORGET_MS = 900_000;
const MAX_PEERS = 1000;

interface Failures {
  readonly count: number;
  readonly lastMs: number;
}

/** After a few failed logins an address waits, twice as long each time. */
export class LoginBrake {
  readonly #nowMs: () => number;
  readonly #failures = new Map<string, Failures>();

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  /** Nothing is looked at before the wait is over. @throws OwlError */
  check(peer: string): void {
    const waitMs = this.#waitMs(peer);
    if (waitMs <= 0) return;
    const seconds = Math.ceil(waitMs / 1000);
    throw new OwlError("too_many_attempts", `too many logins failed: wait ${seconds} s`, {
      facts: { retry_after: seconds },
    });
  }

  failed(peer: string): void {
    const known = this.#failures.get(peer);
    const nowMs = this.#nowMs();
    const count = known === undefined || nowMs - known.lastMs > FORGET_MS ? 0 : known.count;
    this.#failures.delete(peer);
    const [oldest] = this.#failures.keys();
    if (oldest !== undefined && this.#failures.size >= MAX_PEERS) this.#failures.delete(oldest);
    this.#failures.set(peer, { count: count + 1, lastMs: nowMs });
  }

  succeeded(peer: string): void {
    this.#failures.delete(peer);
  }

  #waitMs(peer: string): number {
    const known = this.#failures.get(peer);
    if (known === undefined || known.count < FREE_FAILURES) return 0;
    const waitMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (known.count - FREE_FAILURES));
    return known.lastMs + waitMs - this.#nowMs();
  }
}
