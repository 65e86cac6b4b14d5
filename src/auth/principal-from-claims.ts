import type { Principal } from "./principal.ts";
import { ANONYMOUS } from "./principal.ts";
import { refuseToken } from "./bearer-token.ts";

export type Claims = Readonly<Record<string, unknown>>;

const MAX_ID_CHARS = 256;

/** Control, format (bidirectional overrides, zero width), surrogate, private and unassigned characters, and line separators. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;

/**
 * Names that the server itself writes where principals stand: callers without a token, the client on stdio, the operator with a link of
 * the dashboard, the server's own rows, operators on the machine (`local:root`), sums over others (`(others)`). Those of JavaScript mean
 * something when an id becomes the key of an object.
 */
const RESERVED_IDS = new Set([
  ANONYMOUS.id,
  "stdio",
  "dashboard",
  "owlclaw",
  "local",
  "*",
  "__proto__",
  "constructor",
  "prototype",
]);
const RESERVED_BEGINNINGS: readonly string[] = ["local:", "("];

/** Scripts with letters that look like Latin ones. A word must not mix them; separate words may. */
const LOOK_ALIKE_SCRIPTS = ["Latin", "Greek", "Cyrillic", "Armenian", "Cherokee", "Coptic", "Lisu", "Deseret"];
const MIXED_WORD = mixedWord(LOOK_ALIKE_SCRIPTS);

/** RFC 6749: printable ASCII without space, quote and backslash. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** The principal of verified claims. */
export function principalFromClaims(claims: Claims, groupsClaim: string): Principal {
  const id = principalId(claims);
  checkGroups(claims[groupsClaim], groupsClaim);
  const { exp } = claims;
  return Object.freeze({
    id,
    scopes: Object.freeze(scopesFromClaims(claims)),
    claims: Object.freeze({ ...claims }),
    ...(typeof exp === "number" ? { expiresAt: exp } : {}),
  });
}

/** One issuer is trusted, so `sub` alone is unique. With several, `iss|` goes in front here. */
function principalId(claims: Claims): string {
  const claim = claims["sub"] === undefined ? "client_id" : "sub";
  const id = claims[claim];
  if (id === undefined)
    throw refuseToken("token_claims", "The token names no principal: it has neither sub nor client_id.");
  if (typeof id !== "string") throw refuseToken("token_claims", `The token's ${claim} is not a string.`);
  const problem = principalIdProblem(id);
  if (problem !== undefined) throw refuseToken("token_claims", `The token's ${claim} ${problem}.`);
  return id;
}

/** Refuses a token with invalid groups: ignoring them would skip the policy of those groups. */
function checkGroups(groups: unknown, claim: string): void {
  if (groups === undefined || typeof groups === "string") return;
  if (Array.isArray(groups) && groups.every((group) => typeof group === "string")) return;
  throw refuseToken("token_claims", `The token's ${claim} is neither a string nor a list of strings.`);
}

/** Matches a word with letters of two of the scripts. */
function mixedWord(scripts: readonly string[]): RegExp {
  const others = (script: string): string =>
    scripts.flatMap((other) => (other === script ? [] : [`\\p{Script=${other}}`])).join("");
  const pairs = scripts.map((script) => `\\p{Script=${script}}[\\p{L}\\p{M}]*[${others(script)}]`);
  return new RegExp(pairs.join("|"), "u");
}

/** Says what is wrong with a principal id, as the end of a sentence. */
export function principalIdProblem(id: string): string | undefined {
  if (id === "") return "is empty";
  if (id.length > MAX_ID_CHARS) return `is longer than ${MAX_ID_CHARS} characters`;
  if (UNPRINTABLE.test(id)) return "has characters that cannot be shown";
  if (id.trim() !== id) return "begins or ends with white space";
  if (isReserved(id)) return "is a reserved name";
  if (id.normalize("NFKC") !== id) return "is not in its normal form (NFKC)";
  if (MIXED_WORD.test(id)) return "mixes letters of scripts that look alike, such as Latin and Cyrillic, in one word";
  return undefined;
}

/** Compares after normalization, so that look-alike characters such as full-width letters are reserved too. */
function isReserved(id: string): boolean {
  const name = id.normalize("NFKC").toLowerCase().trim();
  return RESERVED_IDS.has(name) || RESERVED_BEGINNINGS.some((beginning) => name.startsWith(beginning));
}

export function isScope(value: string): boolean {
  return SCOPE.test(value);
}

function scopesFromClaims(claims: Claims): string[] {
  const { scope, scp } = claims;
  if (scope !== undefined) {
    if (typeof scope !== "string") throw refuseToken("token_claims", "The token's scope is not a string.");
    return checkedScopes(splitScopes(scope), "scope");
  }
  if (scp === undefined) return [];
  if (typeof scp === "string") return checkedScopes(splitScopes(scp), "scp");
  if (Array.isArray(scp)) return checkedScopes(scp, "scp");
  throw refuseToken("token_claims", "The token's scp is neither a string nor a list.");
}

function splitScopes(scopes: string): string[] {
  return scopes.split(" ").filter((scope) => scope !== "");
}

function checkedScopes(scopes: readonly unknown[], claim: string): string[] {
  const unique = new Set<string>();
  for (const scope of scopes) {
    if (typeof scope !== "string" || !isScope(scope))
      throw refuseToken("token_claims", `The token's ${claim} holds an invalid scope.`);
    unique.add(scope);
  }
  return [...unique];
}
