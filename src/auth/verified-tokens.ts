import type { Principal } from "./principal.ts";

interface VerifiedToken {
  readonly principal: Principal;
  readonly expiresAtMs: number;
  /** The generation of the keys that were in force when verification began. */
  readonly keyGeneration: number;
  /** The claim that named groups then. */
  readonly groupsClaim: string;
}

interface Moment {
  readonly nowMs: number;
  readonly keyGeneration: number;
  readonly groupsClaim: string;
}

interface Entry extends VerifiedToken {
  usedAt: number;
}

/**
 * Principals of tokens that passed verification, by digest of the token: the tokens themselves are not kept.
 * The least recently used goes first. What older keys verified no longer counts.
 */
export class VerifiedTokens {
  readonly #entries = new Map<string, Entry>();
  readonly #maxEntries: number;
  /** Counts uses. Moving an entry to the end of the map would make the map anew every few calls. */
  #uses = 0;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(digest: string, { nowMs, keyGeneration, groupsClaim }: Moment): Principal | undefined {
    const entry = this.#entries.get(digest);
    if (entry === undefined) return undefined;
    const isOutdated = keyGeneration !== entry.keyGeneration || groupsClaim !== entry.groupsClaim;
    if (nowMs >= entry.expiresAtMs || isOutdated) {
      this.#entries.delete(digest);
      return undefined;
    }
    entry.usedAt = this.#nextUse();
    return entry.principal;
  }

  set(digest: string, entry: VerifiedToken): void {
    if (!this.#entries.has(digest) && this.#entries.size >= this.#maxEntries) this.#forgetOldest();
    this.#entries.set(digest, { ...entry, usedAt: this.#nextUse() });
  }

  #nextUse(): number {
    this.#uses += 1;
    return this.#uses;
  }

  #forgetOldest(): void {
    const byUse = [...this.#entries].toSorted(([, a], [, b]) => a.usedAt - b.usedAt);
    // Some at once: a flood of new tokens must not sort for each of them.
    for (const [digest] of byUse.slice(0, Math.ceil(this.#maxEntries / FORGOTTEN_SHARE))) this.#entries.delete(digest);
  }
}

const FORGOTTEN_SHARE = 10;
