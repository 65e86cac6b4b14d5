import type { Principal } from "./principal.ts";

interface VerifiedToken {
  readonly principal: Principal;
  readonly expiresAtMs: number;
  /** The generation of the keys that were in force when verification began. */
  readonly keyGeneration: number;
}

interface Moment {
  readonly nowMs: number;
  readonly keyGeneration: number;
}

/**
 * Principals of tokens that passed verification, by digest of the token: the tokens themselves are not kept.
 * The least recently used goes first. What older keys verified no longer counts.
 */
export class VerifiedTokens {
  readonly #entries = new Map<string, VerifiedToken>();
  readonly #maxEntries: number;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(digest: string, { nowMs, keyGeneration }: Moment): Principal | undefined {
    const entry = this.#entries.get(digest);
    if (entry === undefined) return undefined;
    this.#entries.delete(digest);
    if (nowMs >= entry.expiresAtMs || keyGeneration !== entry.keyGeneration) return undefined;
    this.#entries.set(digest, entry);
    return entry.principal;
  }

  set(digest: string, entry: VerifiedToken): void {
    this.#entries.delete(digest);
    this.#entries.set(digest, entry);
    if (this.#entries.size <= this.#maxEntries) return;
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined) this.#entries.delete(oldest);
  }
}
