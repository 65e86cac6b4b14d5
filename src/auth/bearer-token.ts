import { OwlError } from "../errors/owl-error.ts";

/** Real access tokens stay below 4 KiB. Twice that leaves room for many groups and keeps hashing and parsing cheap. */
const MAX_TOKEN_BYTES = 8192;

export const MAX_HEADER_CHARS: number = MAX_TOKEN_BYTES + "Bearer ".length;
const CREDENTIALS = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+)(?: +(.*))?$/;
const COMPACT_JWS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** A token for another purpose (logout, security event, DPoP proof) has another `typ` and is not an access token. */
const ACCESS_TOKEN_TYPES = new Set(["jwt", "at+jwt", "application/jwt", "application/at+jwt"]);

// Strings first, so that a brace inside a string is not taken for structure.
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/g;

/** Why a token is refused. The value is sent in `error.data.reason`, so it is part of the wire format. */
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

/** The message is sent to the client: it must not contain the token. */
export function refuseToken(reason: TokenRefusal, message: string, cause?: unknown): OwlError {
  return new OwlError("unauthorized", message, {
    facts: { reason },
    ...(cause === undefined ? {} : { cause }),
  });
}

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

/**
 * Checks the shape of a compact JWS before any cryptography. Keys that a header names or carries
 * (`jwk`, `jku`, `x5c`, `x5u`) are ignored: only configured keys verify.
 */
export function checkTokenHeader(token: string): void {
  const parts = token.split(".");
  if (!parts.every(isCanonicalBase64url)) throw refuseToken("token_malformed", "The token is not canonical base64url.");
  const { typ } = parseJsonObject(decodePart(parts[0]));
  if (typ !== undefined && !(typeof typ === "string" && ACCESS_TOKEN_TYPES.has(typ.toLowerCase()))) {
    throw refuseToken("token_malformed", "The token's type is not that of an access token.");
  }
}

/** Call this after the signature was verified, so that unauthenticated clients cannot cause the scan. */
export function checkUniqueClaims(token: string): void {
  parseJsonObject(decodePart(token.split(".")[1]));
}

function decodePart(part: string | undefined): string {
  return Buffer.from(part ?? "", "base64url").toString("utf8");
}

/** Several encodings of one token would create several cache entries and bypass checks by text. */
function isCanonicalBase64url(part: string): boolean {
  return Buffer.from(part, "base64url").toString("base64url") === part;
}

function parseJsonObject(json: string): object & { readonly typ?: unknown } {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    // No cause: the message of a JSON error quotes the token.
    throw refuseToken("token_malformed", "The token does not hold JSON.");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refuseToken("token_malformed", "The token does not hold a JSON object.");
  }
  if (hasDuplicateMembers(json)) throw refuseToken("token_malformed", "The token names a member twice.");
  return value;
}

/**
 * Whether an object in a valid JSON text has a duplicate member. Parsers differ in which of the two they keep,
 * so such a token could have another meaning for its issuer than for this server.
 */
export function hasDuplicateMembers(json: string): boolean {
  const open: (Set<unknown> | undefined)[] = [];
  let lastString = "";
  for (const [token] of json.matchAll(TOKENS)) {
    if (token === "{") open.push(new Set());
    else if (token === "[") open.push(undefined);
    else if (token === "}" || token === "]") open.pop();
    else if (token === ":") {
      const name: unknown = JSON.parse(lastString);
      const names = open.at(-1);
      if (names?.has(name)) return true;
      names?.add(name);
    } else if (token !== ",") lastString = token;
  }
  return false;
}
