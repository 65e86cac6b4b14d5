import { OwlError } from "../errors/owl-error.ts";

/** Why a caller is not let in. It stands in `error.data.reason`, so the words are part of the wire. */
export type TokenRefusal =
  | "token_missing"
  | "token_malformed"
  | "token_too_large"
  | "token_algorithm"
  | "token_key_unknown"
  | "token_signature"
  | "token_expired"
  | "token_not_yet_valid"
  | "token_issuer"
  | "token_audience"
  | "token_claims"
  | "token_sender_constrained";

/** The message reaches the caller: it says what is wrong and never repeats the token. */
export function refuseToken(reason: TokenRefusal, message: string, cause?: unknown): OwlError {
  return new OwlError("unauthorized", message, {
    facts: { reason },
    ...(cause === undefined ? {} : { cause }),
  });
}
