import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { OwlError } from "../errors/owl-error.ts";
import { isObject } from "./json-rpc.ts";

const ALGORITHM = "aes-256-gcm";
const IV_BYTES = 12;
const TAG_BYTES = 16;
export const STATE_LIFE_MS: number = 15 * 60_000;
const MAX_CHARS = 1_000_000;

/**
 * Seals what a suspended call must know when it runs again. The client carries the state and may be anybody:
 * it is encrypted, ends by itself, and opens only for the same caller and the same request.
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

  /** The same for every spelling of the same state. */
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
      // One message for every reason: which check failed is nobody's business but the log's.
      throw new OwlError("invalid_params", "the requestState is invalid or has expired", {
        hint: "send the request again without requestState and inputResponses",
        cause,
      });
    }
  }
}
