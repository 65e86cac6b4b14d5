import { errors, jwtVerify } from "jose";
import { isOwlError, type OwlError } from "../errors/owl-error.ts";
import type { KeySource } from "./key-source.ts";
import type { Principal } from "./principal.ts";
import { principalFromClaims, type Claims } from "./principal-from-claims.ts";
import { refuseToken, checkTokenHeader, checkUniqueClaims } from "./bearer-token.ts";

/** Clocks of servers with NTP differ by less. */
const CLOCK_SKEW_SECONDS = 30;

/** A full cache evicts a tenth of its entries. */
const EVICTED_SHARE = 10;

/** The end of year 9999. A larger value is milliseconds by mistake, or `1e999`, which JSON parsers read as infinity. */
const LATEST_TIME_SECONDS = 253_402_300_799;

export interface VerifyOptions {
  readonly keys: KeySource;
  readonly issuer: string;
  readonly audience: string;
  /** The claim that names groups. */
  readonly groupsClaim: string;
  readonly nowMs: number;
}

/** The principal of a token, or throws `unauthorized`. */
export async function verifyToken(token: string, options: VerifyOptions): Promise<Principal> {
  checkTokenHeader(token);
  const claims = await verifiedClaims(token, options);
  checkUniqueClaims(token);
  checkTimes(claims, options.nowMs / 1000);
  if (isSenderConstrained(claims)) {
    throw refuseToken(
      "token_sender_constrained",
      "The token is bound to a key of its owner, so it cannot be used as a bearer token.",
    );
  }
  return principalFromClaims(claims, options.groupsClaim);
}

async function verifiedClaims(token: string, { keys, issuer, audience, nowMs }: VerifyOptions): Promise<Claims> {
  try {
    const { payload } = await jwtVerify(token, (header) => keys.keyFor(header), {
      algorithms: [...keys.algorithms],
      requiredClaims: ["exp"],
      clockTolerance: CLOCK_SKEW_SECONDS,
      currentDate: new Date(nowMs),
      ...(issuer === "" ? {} : { issuer }),
      ...(audience === "" ? {} : { audience }),
    });
    return payload;
  } catch (error) {
    throw toRefusal(error);
  }
}

/** Errors of jose contain the claims, and a JSON error quotes them: they are not passed on as causes. */
function toRefusal(error: unknown): OwlError {
  if (isOwlError(error)) return error;
  if (error instanceof errors.JWTExpired) return refuseToken("token_expired", "The token has expired.");
  if (error instanceof errors.JOSEAlgNotAllowed) {
    return refuseToken("token_algorithm", "The token's algorithm is not accepted.");
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) {
    return refuseToken("token_signature", "The token's signature does not match.");
  }
  if (error instanceof errors.JWTClaimValidationFailed) return claimRefusal(error.claim, error.reason);
  return refuseToken("token_malformed", "The token cannot be read.");
}

function claimRefusal(claim: string, reason: string): OwlError {
  if (claim === "iss") return refuseToken("token_issuer", "The token is not from the issuer that this server trusts.");
  if (claim === "aud") return refuseToken("token_audience", "The token was made for another service.");
  if (claim === "nbf" && reason === "check_failed") {
    return refuseToken("token_not_yet_valid", "The token is not valid yet.");
  }
  return refuseToken("token_claims", `The token's ${claim} ${reason === "missing" ? "is missing" : "is not valid"}.`);
}

/** Checks that jose does not make: the range of the numbers, and an `iat` in the future. */
function checkTimes(claims: Claims, nowSeconds: number): void {
  for (const claim of ["exp", "nbf", "iat"]) {
    const value = claims[claim];
    if (value === undefined) continue;
    if (typeof value !== "number" || value < 0 || value > LATEST_TIME_SECONDS) {
      throw refuseToken("token_claims", `The token's ${claim} is not a time in seconds.`);
    }
    if (claim === "iat" && value > nowSeconds + CLOCK_SKEW_SECONDS) {
      throw refuseToken("token_not_yet_valid", "The token was issued in the future.");
    }
  }
}

/** RFC 7800: `cnf` names the key that the sender must prove to hold. A bearer token carries no such proof. */
function isSenderConstrained(claims: Claims): boolean {
  return claims["cnf"] !== undefined;
}

interface VerifiedToken {
  readonly principal: Principal;
  readonly expiresAtMs: number;
  /** The generation of the keys that were in force when verification began. */
  readonly keyGeneration: number;
  /** The claim that named groups at that time. */
  readonly groupsClaim: string;
}

interface VerificationMoment {
  readonly nowMs: number;
  readonly keyGeneration: number;
  readonly groupsClaim: string;
}

interface Entry extends VerifiedToken {
  usedAt: number;
}

/**
 * A cache of the principals of verified tokens, by the token's digest; tokens are not stored. The least recently used
 * entries are evicted first. Entries of an older key generation are not used.
 */
export class VerifiedTokens {
  readonly #entries = new Map<string, Entry>();
  readonly #maxEntries: number;
  /** Counts uses. Moving an entry to the end of the map would rebuild the map every few calls. */
  #uses = 0;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(digest: string, { nowMs, keyGeneration, groupsClaim }: VerificationMoment): Principal | undefined {
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
    if (!this.#entries.has(digest) && this.#entries.size >= this.#maxEntries) this.#evictOldest();
    this.#entries.set(digest, { ...entry, usedAt: this.#nextUse() });
  }

  #nextUse(): number {
    this.#uses += 1;
    return this.#uses;
  }

  #evictOldest(): void {
    const byUse = [...this.#entries].toSorted(([, a], [, b]) => a.usedAt - b.usedAt);
    // Evicts several at once, so that many new tokens do not cause a sort each.
    for (const [digest] of byUse.slice(0, Math.ceil(this.#maxEntries / EVICTED_SHARE))) this.#entries.delete(digest);
  }
}
