/** The authenticated caller. The owner of a session, stream, task or sandbox is a principal's `id`. */
export interface Principal {
  /** `sub` or `client_id` of the token (with `iss|` in front when several issuers are trusted), `anonymous`, or the stdio client id. */
  readonly id: string;
  readonly scopes: readonly string[];
  /** Verified claims of the token; empty when there is none. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** When its token expires, in seconds since the epoch. */
  readonly expiresAt?: number;
}

export const ADMIN_SCOPE = "owlclaw:admin";

export const ANONYMOUS: Principal = { id: "anonymous", scopes: [], claims: {} };

export function isOperator(principal: Principal): boolean {
  return principal.scopes.includes(ADMIN_SCOPE);
}
