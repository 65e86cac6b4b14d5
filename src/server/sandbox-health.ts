import { toOwlError } from "../errors/owl-error.ts";
import type { Ground } from "../sandbox/sandboxes.ts";

/** Whether sandboxes can run, for whoever watches the server. */
export type SandboxHealth =
  | { readonly status: "starting" }
  | { readonly status: "ok"; readonly runtime: string }
  | { readonly status: "unavailable"; readonly reason: string; readonly hint: string };

/** Remembers how the start went, and asks what may have changed since. */
export class HealthRecord {
  #health: SandboxHealth = { status: "starting" };
  #ground: Ground | undefined;

  get health(): SandboxHealth {
    const trouble = this.#ground?.places.trouble;
    if (trouble === undefined) return this.#health;
    return { status: "unavailable", reason: trouble.message, hint: trouble.hint };
  }

  async watch(opening: Promise<Ground>): Promise<Ground> {
    try {
      const ground = await opening;
      this.#ground = ground;
      this.#health = { status: "ok", runtime: ground.places.runtimeName };
      return ground;
    } catch (thrown) {
      const { message: reason, hint } = toOwlError(thrown);
      this.#health = { status: "unavailable", reason, hint };
      throw thrown;
    }
  }
}
