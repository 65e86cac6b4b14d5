import { type OwlError, toOwlError } from "../errors/owl-error.ts";
import type { SandboxRuntime } from "./sandboxes.ts";

interface Trouble {
  readonly reason: string;
  readonly hint: string;
  /** The reason for everybody: it names no path and no address. */
  readonly publicReason: string;
}

/** Whether sandboxes can run, for whoever watches the server. */
export type SandboxHealth =
  | { readonly status: "starting" }
  | { readonly status: "ok"; readonly runtime: string }
  /** Those of a template do not start, and the others do; or something of ended ones is left. */
  | ({ readonly status: "degraded" } & Trouble)
  | ({ readonly status: "unavailable" } & Trouble);

/** By what the error is about. Its own words may name paths and addresses. */
const PUBLIC_REASONS: ReadonlyMap<unknown, string> = new Map([
  ["engine_down", "the container engine cannot be reached"],
  ["disk_full", "the disk for sandboxes is full"],
  ["image_missing", "the image is missing"],
]);
const ANY_REASON = "the log and `owlclaw mcp-server doctor` name the cause";

const LEFT_HINT =
  "The log names their folders and the cause. They are tried again every few seconds, and at the next start.";

/** Remembers how the start went, and asks what may have changed since. */
export class HealthRecord {
  #health: SandboxHealth = { status: "starting" };
  #runtime: SandboxRuntime | undefined;

  get health(): SandboxHealth {
    const trouble = this.#runtime?.starter.trouble;
    if (trouble === undefined) return this.#leftovers() ?? this.#health;
    const { error, template } = trouble;
    if (template === undefined) return { status: "unavailable", ...troubleOf(error) };
    const { reason, hint, publicReason } = troubleOf(error);
    const who = `sandboxes of ${template} cannot start`;
    return { status: "degraded", reason: `${who}: ${reason}`, hint, publicReason: `${who}: ${publicReason}` };
  }

  /** They take room that is counted for nobody. */
  #leftovers(): SandboxHealth | undefined {
    const left = this.#runtime?.starter.left ?? 0;
    if (left === 0) return undefined;
    const reason = `workspaces of ended sandboxes that could not be removed so far: ${left}`;
    return { status: "degraded", reason, hint: LEFT_HINT, publicReason: reason };
  }

  async watch(opening: Promise<SandboxRuntime>): Promise<SandboxRuntime> {
    try {
      const runtime = await opening;
      this.#runtime = runtime;
      this.#health = { status: "ok", runtime: runtime.starter.runtimeName };
      return runtime;
    } catch (thrown) {
      this.#health = { status: "unavailable", ...troubleOf(toOwlError(thrown)) };
      throw thrown;
    }
  }
}

function troubleOf({ message: reason, hint, facts }: OwlError): Trouble {
  return { reason, hint, publicReason: PUBLIC_REASONS.get(facts["reason"]) ?? ANY_REASON };
}
