import { hasDuplicateMembers } from "./duplicate-members.ts";
import { refuseToken } from "./token-refusal.ts";

/** A token made for another purpose (logout, security event, DPoP proof) says so in `typ`, and is no access token. */
const ACCESS_TOKEN_TYPES = new Set(["jwt", "at+jwt", "application/jwt", "application/at+jwt"]);

/**
 * Checks the shape of a compact JWS before any cryptography. Keys that a header names or carries
 * (`jwk`, `jku`, `x5c`, `x5u`) are never looked at: only configured keys verify.
 */
export function checkTokenHeader(token: string): void {
  const parts = token.split(".");
  if (!parts.every(isCanonicalBase64url)) throw refuseToken("token_malformed", "The token is not canonical base64url.");
  const { typ } = parseJsonObject(decodePart(parts[0]));
  if (typ !== undefined && !(typeof typ === "string" && ACCESS_TOKEN_TYPES.has(typ.toLowerCase()))) {
    throw refuseToken("token_malformed", "The token's type is not that of an access token.");
  }
}

/** To be called once the signature holds, so that strangers cannot make us scan. */
export function checkUniqueClaims(token: string): void {
  parseJsonObject(decodePart(token.split(".")[1]));
}

function decodePart(part: string | undefined): string {
  return Buffer.from(part ?? "", "base64url").toString("utf8");
}

/** Several spellings of one token would be several cache entries, and a way around anything keyed on the text. */
function isCanonicalBase64url(part: string): boolean {
  return Buffer.from(part, "base64url").toString("base64url") === part;
}

function parseJsonObject(json: string): object & { readonly typ?: unknown } {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    // No cause: a JSON error quotes what it could not read.
    throw refuseToken("token_malformed", "The token does not hold JSON.");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refuseToken("token_malformed", "The token does not hold a JSON object.");
  }
  if (hasDuplicateMembers(json)) throw refuseToken("token_malformed", "The token names a member twice.");
  return value;
}
