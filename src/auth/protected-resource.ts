import { OwlError } from "../errors/owl-error.ts";
import type { Principal } from "./principal.ts";

interface ProtectedResource {
  /** The URL of the MCP endpoint, as clients reach it. */
  readonly resource: string;
  /** The authorization server. Empty: none is known, as with a shared secret. */
  readonly issuer: string;
  readonly scopes: readonly string[];
}

interface ProtectedResourceMetadata {
  readonly resource: string;
  readonly authorization_servers?: readonly string[];
  readonly scopes_supported: readonly string[];
  readonly bearer_methods_supported: readonly string[];
  readonly resource_name: string;
}

/** The JSON of `/.well-known/oauth-protected-resource` (RFC 9728). */
export function protectedResourceMetadata({ resource, issuer, scopes }: ProtectedResource): ProtectedResourceMetadata {
  return {
    resource,
    // RFC 9728 requires URLs here. An issuer that is only a name is checked in tokens, but not announced.
    ...(URL.canParse(issuer) ? { authorization_servers: [issuer] } : {}),
    scopes_supported: scopes,
    bearer_methods_supported: ["header"],
    resource_name: "OwlClaw",
  };
}

/** Throws `forbidden` unless the principal's token carries the scope. */
export function requireScope(principal: Principal, scope: string): void {
  if (principal.scopes.includes(scope)) return;
  throw new OwlError("forbidden", `This needs the scope ${scope}.`, { facts: { reason: "insufficient_scope", scope } });
}

interface ChallengeOptions {
  /** The URL of `/.well-known/oauth-protected-resource`, as the client reaches it. */
  readonly resourceMetadataUrl: string;
}

/**
 * The `WWW-Authenticate` value for a 401 or 403 (RFC 6750, RFC 9728).
 * A request without a token gets no `error` parameter, as RFC 6750 demands.
 */
export function challenge(error: OwlError, options: ChallengeOptions): string {
  return `Bearer ${[...errorParameters(error), parameter("resource_metadata", options.resourceMetadataUrl)].join(", ")}`;
}

function errorParameters(error: OwlError): string[] {
  const { reason, scope } = error.facts;
  if (reason === "token_missing") return [];
  if (error.kind !== "forbidden")
    return [parameter("error", "invalid_token"), parameter("error_description", error.message)];
  const parameters = [parameter("error", "insufficient_scope"), parameter("error_description", error.message)];
  return typeof scope === "string" ? [...parameters, parameter("scope", scope)] : parameters;
}

/** RFC 6750 allows no quote, no backslash and nothing outside printable ASCII in these values. */
function parameter(name: string, value: string): string {
  return `${name}="${value.replaceAll(/["\\]/g, "'").replaceAll(/[^\x20-\x7e]/g, "?")}"`;
}
