import type { OwlError } from "../errors/owl-error.ts";

export interface ChallengeOptions {
  /** Where this server's `/.well-known/oauth-protected-resource` is, as the client can reach it. */
  readonly resourceMetadataUrl: string;
}

/**
 * The `WWW-Authenticate` value for a 401 or 403 (RFC 6750, RFC 9728).
 * A caller that sent no token gets no `error`: it did nothing wrong yet.
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
