import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Principal } from "../auth/principal.ts";
import { MAX_TIMER_MS } from "../config/value-rules.ts";
import { OwlError } from "../errors/owl-error.ts";

/**
 * The operator of a session, with the claims of their token, because policy rules on groups and claims apply to
 * operators too.
 */
export type Operator = Principal;

export interface OperatorSession {
  readonly operator: Operator;
  /** Required in a header of every change. Pages of other origins cannot set it. */
  readonly csrf: string;
  /** In milliseconds since the epoch. Use extends it. */
  readonly expiresAtMs: number;
  /** Calls the listener once, when the session ends. */
  onEnd(listener: () => void): () => void;
}

export interface OperatorSessionsOptions {
  readonly idleMs: number;
  readonly maxAgeMs: number;
  readonly nowMs?: () => number;
}

/** A new session beyond this limit ends the oldest one. */
const MAX_SESSIONS = 200;
const KEY_BYTES = 32;

/** Sessions are kept in memory only, under the digest of their keys: reading this memory gives no access. */
export class OperatorSessions {
  readonly #options: OperatorSessionsOptions;
  readonly #nowMs: () => number;
  readonly #sessions = new Map<string, LiveSession>();

  constructor(options: OperatorSessionsOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
  }

  /** Opens a session with a new random key. `untilMs`: when the token behind it expires. */
  open(operator: Operator, untilMs?: number): { readonly key: string; readonly session: OperatorSession } {
    const key = randomBytes(KEY_BYTES).toString("base64url");
    const { idleMs, maxAgeMs } = this.#options;
    const nowMs = this.#nowMs();
    const lastMs = Math.min(nowMs + maxAgeMs, untilMs ?? Number.POSITIVE_INFINITY);
    const digest = digestOf(key);
    const session = new LiveSession({ operator, lastMs, idleMs, onOver: () => this.#sessions.delete(digest) });
    session.use(nowMs);
    const [oldest] = this.#sessions.values();
    if (this.#sessions.size >= MAX_SESSIONS) oldest?.end();
    this.#sessions.set(digest, session);
    return { key, session };
  }

  /** Finds the session of a key and extends it. Automatic requests of the page do not extend it. */
  find(key: string, { isUse = true }: { readonly isUse?: boolean } = {}): OperatorSession | undefined {
    const session = this.#sessions.get(digestOf(key));
    if (session === undefined) return undefined;
    const nowMs = this.#nowMs();
    if (session.expiresAtMs > nowMs) {
      if (isUse) session.use(nowMs);
      return session;
    }
    session.end();
    return undefined;
  }

  end(key: string): void {
    this.#sessions.get(digestOf(key))?.end();
  }

  close(): void {
    for (const session of this.#sessions.values()) session.end();
  }
}

export function isSameSecret(given: string, known: string): boolean {
  return timingSafeEqual(Buffer.from(digestOf(given)), Buffer.from(digestOf(known)));
}

export function digestOf(key: string): string {
  return hash("sha256", key, "base64url");
}

interface LiveSessionOptions {
  readonly operator: Operator;
  readonly lastMs: number;
  readonly idleMs: number;
  readonly onOver: () => void;
}

class LiveSession implements OperatorSession {
  readonly operator: Operator;
  readonly csrf = randomBytes(KEY_BYTES).toString("base64url");
  readonly #options: LiveSessionOptions;
  readonly #listeners = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;
  #expiresAtMs = 0;
  #isOver = false;

  constructor(options: LiveSessionOptions) {
    this.operator = options.operator;
    this.#options = options;
  }

  get expiresAtMs(): number {
    return this.#expiresAtMs;
  }

  use(nowMs: number): void {
    const { lastMs, idleMs } = this.#options;
    this.#expiresAtMs = Math.min(lastMs, nowMs + idleMs);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.end(), Math.min(MAX_TIMER_MS, Math.max(0, this.#expiresAtMs - nowMs)));
    this.#timer.unref();
  }

  onEnd(listener: () => void): () => void {
    if (this.#isOver) listener();
    else this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#options.onOver();
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }
}

const LIFE_MS = 600_000;
const MAX_OPEN = 20;

/** The address of the dashboard. */
export interface DashboardAddress {
  readonly url: string;
  /** Opens the dashboard once, within ten minutes. Absent when operators log in with a token. */
  readonly link?: string;
}

/** One-time keys that open the dashboard, for the user who can read the server's terminal or data folder. */
export class OneTimeLinks {
  readonly #nowMs: () => number;
  readonly #expiries = new Map<string, number>();

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  /** Returns a new key. Beyond the limit, the oldest key becomes invalid. */
  create(): string {
    const [oldest] = this.#expiries.keys();
    if (oldest !== undefined && this.#expiries.size >= MAX_OPEN) this.#expiries.delete(oldest);
    const key = randomBytes(32).toString("base64url");
    this.#expiries.set(digestOf(key), this.#nowMs() + LIFE_MS);
    return key;
  }

  /** Returns whether the key was valid. It becomes invalid. */
  take(key: string): boolean {
    const digest = digestOf(key);
    const expiresAtMs = this.#expiries.get(digest);
    this.#expiries.delete(digest);
    return expiresAtMs !== undefined && expiresAtMs > this.#nowMs();
  }
}

/** Failures without a delay, for mistakes such as pasting the wrong token. */
const FREE_FAILURES = 3;
const FIRST_WAIT_MS = 1000;
const MAX_WAIT_MS = 60_000;
const FORGET_MS = 900_000;
const MAX_PEERS = 1000;

interface Failures {
  readonly count: number;
  readonly lastMs: number;
}

/** After a few failed logins an address must wait, twice as long after each further failure. */
export class LoginLimiter {
  readonly #nowMs: () => number;
  readonly #failures = new Map<string, Failures>();

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  /**
   * Rejects a login during the wait without checking its token.
   * @throws OwlError
   */
  check(peer: string): void {
    const waitMs = this.#waitMs(peer);
    if (waitMs <= 0) return;
    const seconds = Math.ceil(waitMs / 1000);
    throw new OwlError("too_many_attempts", `too many logins failed: wait ${seconds} s`, {
      facts: { retry_after: seconds },
    });
  }

  failed(peer: string): void {
    const known = this.#failures.get(peer);
    const nowMs = this.#nowMs();
    const count = known === undefined || nowMs - known.lastMs > FORGET_MS ? 0 : known.count;
    this.#failures.delete(peer);
    const [oldest] = this.#failures.keys();
    if (oldest !== undefined && this.#failures.size >= MAX_PEERS) this.#failures.delete(oldest);
    this.#failures.set(peer, { count: count + 1, lastMs: nowMs });
  }

  succeeded(peer: string): void {
    this.#failures.delete(peer);
  }

  #waitMs(peer: string): number {
    const known = this.#failures.get(peer);
    if (known === undefined || known.count < FREE_FAILURES) return 0;
    const waitMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (known.count - FREE_FAILURES));
    return known.lastMs + waitMs - this.#nowMs();
  }
}
