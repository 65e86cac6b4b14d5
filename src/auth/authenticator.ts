import { hash } from "node:crypto";
import { OwlError, isOwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";
import { bearerToken, MAX_HEADER_CHARS } from "./bearer-token.ts";
import { RemoteKeys, parseJwksUrl } from "./remote-keys.ts";
import { publicKeys, secretKeys, type KeySource } from "./key-source.ts";
import { ANONYMOUS, type Principal } from "./principal.ts";
import { verifyToken, VerifiedTokens } from "./verify-token.ts";

const MAX_CACHED_TOKENS = 10_000;
/** The usual spelling of the scheme. `bearerToken` parses every other header. */
const PLAIN_SCHEME = "Bearer ";

/** The `auth` part of the configuration. An empty string means: not set. */
export interface AuthConfig {
  readonly enabled: boolean;
  readonly jwt: {
    readonly secret: string;
    readonly publicKey: string;
    readonly jwksUrl: string;
    readonly audience: string;
    readonly issuer: string;
  };
}

export interface Authenticator {
  /**
   * The principal of an `Authorization` header: synchronously for a cached token, otherwise as a promise.
   * Throws (or rejects with) `unauthorized`, or `overloaded` when the keys cannot be fetched.
   */
  authenticate(authorization: string | undefined): Principal | Promise<Principal>;
  close(): void;
}

interface AuthenticatorOptions {
  readonly auth: AuthConfig;
  /** Milliseconds since the epoch. Default: the system's clock. */
  readonly clock?: () => number;
  /** Milliseconds of a monotonic clock. Default: that of the process. */
  readonly steadyClock?: () => number;
  /** The claim that names groups, in the policy in force. */
  readonly groupsClaim?: () => string;
  readonly fetch?: typeof fetch;
  readonly logger: Logger;
}

/** With auth disabled, every caller is `anonymous`. */
export async function createAuthenticator(options: AuthenticatorOptions): Promise<Authenticator> {
  if (!options.auth.enabled) return { authenticate: () => ANONYMOUS, close: () => {} };
  const { auth, clock = Date.now, logger, groupsClaim = () => "groups" } = options;
  const { steadyClock = () => performance.now(), fetch = globalThis.fetch } = options;
  warnAboutMissingAudience(auth, logger);
  const keys = await openKeys({ auth, clock, steadyClock, fetch, logger });
  return new TokenAuthenticator({ auth, clock, keys, logger, groupsClaim });
}

interface TokenAuthenticatorOptions {
  readonly auth: AuthConfig;
  readonly clock: () => number;
  readonly groupsClaim: () => string;
  readonly keys: KeySource;
  readonly logger: Logger;
}

class TokenAuthenticator implements Authenticator {
  readonly #options: TokenAuthenticatorOptions;
  readonly #verified = new VerifiedTokens(MAX_CACHED_TOKENS);

  constructor(options: TokenAuthenticatorOptions) {
    this.#options = options;
  }

  authenticate(authorization: string | undefined): Principal | Promise<Principal> {
    // Skips parsing for a known token: only verified tokens have their digest in the cache.
    const plain = authorization?.startsWith(PLAIN_SCHEME) === true && authorization.length <= MAX_HEADER_CHARS;
    const known = plain ? this.#known(digestOf(authorization.slice(PLAIN_SCHEME.length))) : undefined;
    if (known !== undefined) return known;
    const token = bearerToken(authorization);
    const digest = digestOf(token);
    return this.#known(digest) ?? this.#verify(token, digest);
  }

  close(): void {
    this.#options.keys.close();
  }

  #known(digest: string): Principal | undefined {
    const { keys, clock, groupsClaim } = this.#options;
    if (!keys.isFresh()) return undefined;
    const moment = { nowMs: clock(), keyGeneration: keys.generation, groupsClaim: groupsClaim() };
    return this.#verified.get(digest, moment);
  }

  async #verify(token: string, digest: string): Promise<Principal> {
    const { auth, clock, keys, logger } = this.#options;
    const { issuer, audience } = auth.jwt;
    // Read before the verification: if the keys change meanwhile, the next call verifies again.
    const keyGeneration = keys.generation;
    const groupsClaim = this.#options.groupsClaim();
    try {
      const principal = await verifyToken(token, { keys, issuer, audience, groupsClaim, nowMs: clock() });
      const expiresAtMs = (principal.expiresAt ?? 0) * 1000;
      this.#verified.set(digest, { principal, expiresAtMs, keyGeneration, groupsClaim });
      return principal;
    } catch (error) {
      if (isOwlError(error)) logger.debug("A token was refused.", { reason: error.facts["reason"] ?? error.kind });
      throw error;
    }
  }
}

function digestOf(token: string): string {
  return hash("sha256", token, "base64");
}

async function openKeys(options: Required<Omit<AuthenticatorOptions, "groupsClaim">>): Promise<KeySource> {
  const { secret, publicKey, jwksUrl, issuer } = options.auth.jwt;
  if ([secret, publicKey, jwksUrl].filter((value) => value !== "").length !== 1) {
    throw new OwlError(
      "internal",
      "auth is enabled and needs exactly one of auth.jwt.secret, auth.jwt.publicKey and auth.jwt.jwksUrl.",
      {
        hint: "Set one of them, for example with MCP_AUTH_JWT_SECRET or MCP_AUTH_JWT_PUBLIC_KEY, and leave the others empty.",
        retryable: false,
      },
    );
  }
  if (secret !== "") return secretKeys(secret);
  if (publicKey !== "") return publicKeys(publicKey);
  if (issuer === "") {
    throw new OwlError("internal", "auth.jwt.jwksUrl needs auth.jwt.issuer: other issuers may use the same keys.", {
      hint: "Set auth.jwt.issuer (MCP_AUTH_ISSUER) to the iss of your tokens.",
      retryable: false,
    });
  }
  const keys = new RemoteKeys({ ...options, url: parseJwksUrl(jwksUrl) });
  await keys.refresh();
  return keys;
}

function warnAboutMissingAudience({ jwt }: AuthConfig, logger: Logger): void {
  // A secret belongs to this server alone; an issuer's key signs tokens for many services.
  if (jwt.secret !== "" || jwt.audience !== "") return;
  logger.warning("auth.jwt.audience is empty: tokens that the issuer made for other services are accepted.");
}
