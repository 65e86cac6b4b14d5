import { OwlError, toPathlessError, toOwlError } from "../errors/owl-error.ts";
import type { SandboxRuntime } from "./sandboxes.ts";

const RETRY_MS = 3000;
const ANY_REASON = "the log and `owlclaw mcp-server doctor` name the cause";
const LEFT_HINT =
  "The log names their folders and the cause. They are tried again every few seconds, and at the next start.";

export type Closers = (() => Promise<void>)[];

/**
 * Opens the runtime and the warm pool when they are first needed. A failure that is not retryable stays until the next start of the
 * server. After a retryable one, such as an engine that is down, each call and a timer try again.
 */
export class SandboxRuntimeOpener {
  readonly #openSandboxRuntime: (closers: Closers) => Promise<SandboxRuntime>;
  readonly #closers: Closers = [];
  readonly #record = new HealthRecord();
  #runtime: Promise<SandboxRuntime> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(openSandboxRuntime: (closers: Closers) => Promise<SandboxRuntime>) {
    this.#openSandboxRuntime = openSandboxRuntime;
  }

  get health(): SandboxHealth {
    return this.#record.health;
  }

  open(): Promise<SandboxRuntime> {
    this.#runtime ??= this.#record.watch(
      this.#openSandboxRuntime(this.#closers).catch((thrown: unknown) => this.#giveUp(thrown)),
    );
    return this.#runtime;
  }

  /** Stops retries. `close` follows when all sandboxes have ended. */
  stop(): void {
    this.#isClosing = true;
    clearTimeout(this.#retry);
  }

  async close(): Promise<void> {
    this.stop();
    await this.#runtime?.catch(() => undefined);
    await this.#closeAll();
  }

  async #giveUp(thrown: unknown): Promise<never> {
    await this.#closeAll();
    const error = explain(thrown);
    if (error.retryable && !this.#isClosing) {
      this.#runtime = undefined;
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => void this.open().catch(() => undefined), RETRY_MS).unref();
    }
    throw error;
  }

  /** In reverse order, each once. */
  async #closeAll(): Promise<void> {
    for (const close of this.#closers.splice(0).toReversed()) await close();
  }
}

/** Every failure to open becomes `sandbox_unavailable`: only the operator can repair it. */
function explain(thrown: unknown): OwlError {
  const error = toPathlessError(thrown, "sandbox_unavailable");
  if (error.kind === "sandbox_unavailable" || error.kind === "shutting_down") return error;
  return new OwlError("sandbox_unavailable", error.message, { hint: error.hint, facts: error.facts, cause: error });
}

interface Problem {
  readonly reason: string;
  readonly hint: string;
  /** The reason without paths and addresses, for unauthenticated readers. */
  readonly publicReason: string;
}

/** Whether sandboxes can run, for health checks. */
export type SandboxHealth =
  | { readonly status: "starting" }
  | { readonly status: "ok"; readonly runtime: string }
  /** Sandboxes of one template do not start, or workspaces of ended ones could not be removed. */
  | ({ readonly status: "degraded" } & Problem)
  | ({ readonly status: "unavailable" } & Problem);

/** By the reason of the error; its message may contain paths and addresses. */
const PUBLIC_REASONS: ReadonlyMap<unknown, string> = new Map([
  ["engine_down", "the container engine cannot be reached"],
  ["disk_full", "the disk for sandboxes is full"],
  ["image_missing", "the image is missing"],
]);

/** The result of the start, and problems of the runtime since then. */
class HealthRecord {
  #health: SandboxHealth = { status: "starting" };
  #runtime: SandboxRuntime | undefined;

  get health(): SandboxHealth {
    const problem = this.#runtime?.starter.problem;
    if (problem === undefined) return this.#unremoved() ?? this.#health;
    const { error, template } = problem;
    if (template === undefined) return { status: "unavailable", ...problemOf(error) };
    const { reason, hint, publicReason } = problemOf(error);
    const effect = `sandboxes of ${template} cannot start`;
    return { status: "degraded", reason: `${effect}: ${reason}`, hint, publicReason: `${effect}: ${publicReason}` };
  }

  /** Workspaces that could not be removed take disk space that no limit counts. */
  #unremoved(): SandboxHealth | undefined {
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
      this.#health = { status: "unavailable", ...problemOf(toOwlError(thrown)) };
      throw thrown;
    }
  }
}

function problemOf({ message: reason, hint, facts }: OwlError): Problem {
  return { reason, hint, publicReason: PUBLIC_REASONS.get(facts["reason"]) ?? ANY_REASON };
}
