import { refuseToken } from "./token-refusal.ts";

/** Real access tokens stay below 4 KiB. Twice that leaves room for many groups and keeps hashing and parsing cheap. */
const MAX_TOKEN_BYTES = 8192;

export const MAX_HEADER_CHARS: number = MAX_TOKEN_BYTES + "Bearer ".length;
const CREDENTIALS = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+)(?: +(.*))?$/;
const COMPACT_JWS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** Takes the one token out of an `Authorization` header, or throws `unauthorized`. */
export function bearerToken(authorization: string | undefined): string {
  if (authorization === undefined || authorization === "") {
    throw refuseToken("token_missing", "This server needs a bearer token.");
  }
  if (authorization.length > MAX_HEADER_CHARS) {
    throw refuseToken("token_too_large", `The token is longer than ${MAX_TOKEN_BYTES} bytes.`);
  }
  const [, scheme, token = ""] = CREDENTIALS.exec(authorization) ?? [];
  if (scheme === undefined) throw refuseToken("token_malformed", "The Authorization header cannot be read.");
  if (scheme.toLowerCase() !== "bearer") {
    throw refuseToken(
      "token_missing",
      "This server needs a bearer token: other authorization schemes are not accepted.",
    );
  }
  if (!COMPACT_JWS.test(token)) {
    throw refuseToken("token_malformed", "The Authorization header must hold exactly one signed JWT after Bearer.");
  }
  return token;
}
