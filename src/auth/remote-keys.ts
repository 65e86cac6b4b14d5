import { isRecord } from "../platform/records.ts";
import { createLocalJWKSet, errors, type CryptoKey, type JSONWebKeySet, type JWSHeaderParameters } from "jose";
import { OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { KeySource } from "./key-source.ts";
import { refuseToken } from "./bearer-token.ts";

/** From this age on, a request starts a refresh in the background: no request waits, and a short outage has no effect. */
const REFRESH_AFTER_MS = 5 * 60_000;
/** Older keys are not used: the issuer may have revoked one of them. */
const MAX_AGE_MS = 15 * 60_000;
/** Tokens with unknown key ids must not cause a fetch each. */
const COOLDOWN_MS = 30_000;
const COOLDOWN_AFTER_FAILURE_MS = 5_000;
const FETCH_TIMEOUT_MS = 5_000;
const MAX_KEYS = 100;

/** Only asymmetric algorithms: a key set is public. */
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];

/** Large issuers publish a few dozen keys in a few tens of kilobytes. */
const MAX_KEY_SET_BYTES = 256 * 1024;

interface RemoteKeysOptions {
  readonly url: URL;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Milliseconds of a monotonic clock, which may stop while the machine is suspended. */
  readonly steadyClock: () => number;
  readonly fetch: typeof fetch;
  readonly logger: Logger;
  readonly timeoutMs?: number;
}

interface Moment {
  readonly wallMs: number;
  readonly steadyMs: number;
}

/** The keys of a JWKS URL, refreshed by the requests that use them. */
export class RemoteKeys implements KeySource {
  readonly algorithms: readonly string[] = ALGORITHMS;
  readonly #options: RemoteKeysOptions;
  readonly #closed = new AbortController();
  #generation = 0;
  #document = "";
  #find: ReturnType<typeof createLocalJWKSet> | undefined;
  #fetchedAt: Moment = { wallMs: Number.NEGATIVE_INFINITY, steadyMs: Number.NEGATIVE_INFINITY };
  /** By the steady clock. */
  #nextFetchAtMs = Number.NEGATIVE_INFINITY;
  #pending: Promise<void> | undefined;

  constructor(options: RemoteKeysOptions) {
    this.#options = options;
  }

  get generation(): number {
    return this.#generation;
  }

  isFresh(): boolean {
    const ageMs = this.#ageMs();
    if (ageMs >= REFRESH_AFTER_MS) void this.refresh();
    return ageMs < MAX_AGE_MS;
  }

  async keyFor(header: JWSHeaderParameters): Promise<CryptoKey> {
    if (!this.isFresh()) await this.refresh();
    const known = await this.#lookUp(header);
    if (known !== undefined) return known;
    await this.refresh();
    const added = await this.#lookUp(header);
    if (added !== undefined) return added;
    throw refuseToken("token_key_unknown", "The token's key is not among the issuer's keys.");
  }

  /** Never rejects. Does nothing during the cooldown; joins a fetch that is in flight. */
  async refresh(): Promise<void> {
    if (this.#pending === undefined) {
      if (this.#closed.signal.aborted || this.#options.steadyClock() < this.#nextFetchAtMs) return;
      this.#pending = this.#load().finally(() => {
        this.#pending = undefined;
      });
    }
    await this.#pending;
  }

  close(): void {
    this.#closed.abort();
  }

  #now(): Moment {
    const { clock, steadyClock } = this.#options;
    return { wallMs: clock(), steadyMs: steadyClock() };
  }

  /** The larger age of the two clocks: one can be set back, the other stops while the machine is suspended. */
  #ageMs(): number {
    const { wallMs, steadyMs } = this.#now();
    return Math.max(wallMs - this.#fetchedAt.wallMs, steadyMs - this.#fetchedAt.steadyMs);
  }

  async #lookUp(header: JWSHeaderParameters): Promise<CryptoKey | undefined> {
    if (this.#find === undefined || !this.isFresh()) {
      throw new OwlError("overloaded", "The keys that verify tokens cannot be fetched.", {
        hint: "Try again in a moment. Operators: check that auth.jwt.jwksUrl answers.",
      });
    }
    try {
      return await this.#find(header);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return undefined;
      if (error instanceof errors.JWKSMultipleMatchingKeys) {
        throw refuseToken(
          "token_key_unknown",
          "The token has no kid, and several of the issuer's keys could be meant.",
          error,
        );
      }
      throw refuseToken("token_key_unknown", "The token's key cannot be used.", error);
    }
  }

  async #load(): Promise<void> {
    const { url, steadyClock, logger, timeoutMs = FETCH_TIMEOUT_MS } = this.#options;
    const startedAt = this.#now();
    try {
      const signal = AbortSignal.any([this.#closed.signal, AbortSignal.timeout(timeoutMs)]);
      const document = await fetchKeySet({ url, signal, fetch: this.#options.fetch });
      if (document !== this.#document) this.#replaceKeys(document);
      this.#fetchedAt = startedAt;
      this.#nextFetchAtMs = startedAt.steadyMs + COOLDOWN_MS;
    } catch (error) {
      this.#nextFetchAtMs = steadyClock() + COOLDOWN_AFTER_FAILURE_MS;
      if (!this.#closed.signal.aborted)
        logger.warning("The JWKS cannot be fetched.", { url: `${url.origin}${url.pathname}`, error: describe(error) });
    }
  }

  #replaceKeys(document: string): void {
    const keySet: unknown = JSON.parse(document);
    if (!isKeySet(keySet)) throw new Error(`the answer is not a JWKS of at most ${MAX_KEYS} keys`);
    this.#find = createLocalJWKSet(keySet);
    this.#document = document;
    this.#generation += 1;
    this.#options.logger.info("The JWKS changed.", { keys: keySet.keys.length });
  }
}

/** jose checks each key when it is first used. */
function isKeySet(value: unknown): value is JSONWebKeySet {
  return isRecord(value) && Array.isArray(value["keys"]) && value["keys"].length <= MAX_KEYS;
}

/** The reason of a failed `fetch` (connection refused, redirect, unknown host) is in its cause. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

interface FetchKeySetOptions {
  readonly url: URL;
  readonly signal: AbortSignal;
  readonly fetch: typeof fetch;
}

/** The text of a JWKS. Any answer but a 200 within the size limit is an error; redirects are not followed. */
async function fetchKeySet({ url, signal, fetch }: FetchKeySetOptions): Promise<string> {
  const response = await fetch(url, {
    signal,
    redirect: "error",
    headers: { accept: "application/jwk-set+json, application/json" },
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the answer has status ${response.status}`);
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const body: AsyncIterable<Uint8Array> | readonly Uint8Array[] = response.body ?? [];
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > MAX_KEY_SET_BYTES) throw new Error(`the answer is longer than ${MAX_KEY_SET_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Over plain HTTP, an attacker on the network could replace the keys; only loopback is exempt. */
export function parseJwksUrl(value: string): URL {
  const hint = "Use an https:// URL without user and password; http:// is for loopback only.";
  if (!URL.canParse(value))
    throw new OwlError("internal", "auth.jwt.jwksUrl is not a URL.", { hint, retryable: false });
  const url = new URL(value);
  const isSafe = url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname));
  if (isSafe && url.username === "" && url.password === "") return url;
  throw new OwlError("internal", "auth.jwt.jwksUrl is not safe to fetch keys from.", { hint, retryable: false });
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
