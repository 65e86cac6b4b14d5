import { randomBytes } from "node:crypto";
import { digestOf } from "./operator-sessions.ts";

const LIFE_MS = 600_000;
const MAX_OPEN = 20;

/** Keys that open the page once, for whoever can read the terminal or the data folder of the server. */
export class OneTimeLinks {
  readonly #nowMs: () => number;
  readonly #expiries = new Map<string, number>();

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  /** A new key. When there are too many, the oldest is good no more. */
  create(): string {
    const [oldest] = this.#expiries.keys();
    if (oldest !== undefined && this.#expiries.size >= MAX_OPEN) this.#expiries.delete(oldest);
    const key = randomBytes(32).toString("base64url");
    this.#expiries.set(digestOf(key), this.#nowMs() + LIFE_MS);
    return key;
  }

  /** Whether it was good; it is not any more. */
  take(key: string): boolean {
    const digest = digestOf(key);
    const expiresAtMs = this.#expiries.get(digest);
    this.#expiries.delete(digest);
    return expiresAtMs !== undefined && expiresAtMs > this.#nowMs();
  }
}
