import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { OwlError } from "../errors/owl-error.ts";
import { isObject } from "./json-rpc.ts";

const ALGORITHM = "aes-256-gcm";
const IV_BYTES = 12;
const TAG_BYTES = 16;
export const STATE_LIFE_MS: number = 15 * 60_000;
const MAX_CHARS = 1_000_000;

/**
 * Seals what a suspended call must know when it runs again. The client carries the state and is not trusted: the state
 * is encrypted, expires, and opens only for the same caller and the same request.
 */
export class RequestStates {
  readonly #key: Buffer;
  readonly #now: () => number;

  constructor({ key = randomBytes(32), now = Date.now }: { readonly key?: Buffer; readonly now?: () => number } = {}) {
    this.#key = key;
    this.#now = now;
  }

  seal(payload: unknown, boundTo: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key, iv);
    cipher.setAAD(Buffer.from(boundTo));
    const plain = JSON.stringify({ until: this.#now() + STATE_LIFE_MS, payload });
    const sealed = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64url");
  }

  /** The same id for every spelling of a state in base64. */
  idOf(state: string): string {
    return Buffer.from(state, "base64url").subarray(0, IV_BYTES).toString("base64url");
  }

  open(state: string, boundTo: string): unknown {
    try {
      if (state.length > MAX_CHARS) throw new RangeError("too long");
      const bytes = Buffer.from(state, "base64url");
      const decipher = createDecipheriv(ALGORITHM, this.#key, bytes.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(boundTo));
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      const plain = decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
      const opened: unknown = JSON.parse(plain);
      if (!isObject(opened) || Number(opened["until"]) < this.#now()) throw new RangeError("expired");
      return opened["payload"];
    } catch (cause) {
      // One message for every reason: a client must not learn which check failed.
      throw new OwlError("invalid_params", "the requestState is invalid or has expired", {
        hint: "send the request again without requestState and inputResponses",
        cause,
      });
    }
  }
}

/** Remembers states that are valid for one call. Servers of a cluster may share it. */
export interface UsedStates {
  /** Returns false when the state was used before. */
  use(id: string, lifeMs: number): boolean | Promise<boolean>;
}

const MAX_KEPT = 100_000;

/** Keeps used states in the memory of this process, each until it expires. */
export class KeptStates implements UsedStates {
  readonly #until = new Map<string, number>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  use(id: string, lifeMs: number): boolean {
    const nowMs = this.#nowMs();
    this.#forgetOld(nowMs);
    if (this.#until.has(id)) return false;
    // Removing one early would let it be used twice.
    if (this.#until.size >= MAX_KEPT)
      throw new OwlError("overloaded", "too many calls were continued with answers within a short time");
    this.#until.set(id, nowMs + lifeMs);
    return true;
  }

  /** Removes expired states. The map is in the order of insertion, which is also the order of expiry. */
  #forgetOld(nowMs: number): void {
    for (const [id, untilMs] of this.#until) {
      if (untilMs > nowMs) return;
      this.#until.delete(id);
    }
  }
}
