import { OwlError } from "../errors/owl-error.ts";

const MAX_NONCES = 200_000;

/** What was used once is not used again while anybody would still accept it. */
export class UsedNonces {
  readonly #lifeMs: number;
  readonly #until = new Map<string, number>();

  constructor(lifeMs: number) {
    this.#lifeMs = lifeMs;
  }

  /** @throws OwlError when it was used before. */
  use(nonce: string, nowMs: number): void {
    this.#forgetOld(nowMs);
    if (this.#until.has(nonce))
      throw new OwlError("forbidden", "this forwarded call was made before and is not made again", {
        facts: { reason: "not_forwarded" },
        hint: "send the call itself again",
      });
    if (this.#until.size >= MAX_NONCES)
      throw new OwlError("overloaded", "too many calls were forwarded to this server in a minute");
    this.#until.set(nonce, nowMs + this.#lifeMs);
  }

  /** They stand in the order in which they came. */
  #forgetOld(nowMs: number): void {
    for (const [nonce, untilMs] of this.#until) {
      if (untilMs > nowMs) return;
      this.#until.delete(nonce);
    }
  }
}
