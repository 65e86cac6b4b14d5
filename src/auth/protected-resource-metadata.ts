export interface ProtectedResource {
  /** The URL of the MCP endpoint, as clients reach it. */
  readonly resource: string;
  /** The authorization server. Empty: none is known, as with a shared secret. */
  readonly issuer: string;
  readonly scopes: readonly string[];
}

export interface ProtectedResourceMetadata {
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
    // RFC 9728 wants URLs here. An issuer that is only a name is checked in tokens and not announced.
    ...(URL.canParse(issuer) ? { authorization_servers: [issuer] } : {}),
    scopes_supported: scopes,
    bearer_methods_supported: ["header"],
    resource_name: "OwlClaw",
  };
}
