import { OwlError } from "../errors/owl-error.ts";
import type { Principal } from "./principal.ts";

/** Throws `forbidden` unless the principal's token carries the scope. */
export function requireScope(principal: Principal, scope: string): void {
  if (principal.scopes.includes(scope)) return;
  throw new OwlError("forbidden", `This needs the scope ${scope}.`, { facts: { reason: "insufficient_scope", scope } });
}
