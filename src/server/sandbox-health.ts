import { toOwlError } from "../errors/owl-error.ts";
import type { Ground } from "../sandbox/sandboxes.ts";

/** Whether sandboxes can run, for whoever watches the server. */
export type SandboxHealth =
  | { readonly status: "starting" }
  | { readonly status: "ok"; readonly runtime: string }
  | { readonly status: "unavailable"; readonly reason: string; readonly hint: string };

/** Remembers how the start went: what is wrong stays wrong until the server starts again. */
export class HealthRecord {
  #health: SandboxHealth = { status: "starting" };

  get health(): SandboxHealth {
    return this.#health;
  }

  async watch(opening: Promise<Ground>): Promise<Ground> {
    try {
      const ground = await opening;
      this.#health = { status: "ok", runtime: ground.places.runtimeName };
      return ground;
    } catch (thrown) {
      const { message: reason, hint } = toOwlError(thrown);
      this.#health = { status: "unavailable", reason, hint };
      throw thrown;
    }
  }
}
