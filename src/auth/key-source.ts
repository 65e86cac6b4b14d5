import type { CryptoKey, JWSHeaderParameters } from "jose";
import type { KeyObject } from "node:crypto";

/** Where the keys come from that may verify a token. */
export interface KeySource {
  /** The only algorithms a token may name: they follow from the keys, never from the token. */
  readonly algorithms: readonly string[];
  /** Grows whenever the keys change: what an older generation verified must be verified again. */
  readonly generation: number;
  /** False when the keys are too old to be trusted, or not there yet. `keyFor` then fetches them first. */
  isFresh(): boolean;
  /** Throws `unauthorized` when no key fits the header, `overloaded` when the keys cannot be had. */
  keyFor(header: JWSHeaderParameters): Promise<CryptoKey | KeyObject>;
  close(): void;
}
