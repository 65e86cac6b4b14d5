import { OwlError, toPathlessError } from "../errors/owl-error.ts";
import type { SandboxRuntime } from "./sandboxes.ts";
import { HealthRecord, type SandboxHealth } from "./sandbox-health.ts";

const RETRY_MS = 3000;

export type Closers = (() => Promise<void>)[];

/**
 * Opens what sandboxes stand on when it is first needed. What is wrong with the machine stays wrong until the server starts
 * again; what can pass by itself, as an engine that is down, is tried again by whoever comes, and now and then.
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

  /** Takes nothing new from here on; `close` follows when what stands on it is gone. */
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

  /** In reverse of the order in which they were opened; each once. */
  async #closeAll(): Promise<void> {
    for (const close of this.#closers.splice(0).toReversed()) await close();
  }
}

/** Whatever keeps sandboxes from running is the operator's to repair, and every call says what it is. */
function explain(thrown: unknown): OwlError {
  const error = toPathlessError(thrown, "sandbox_unavailable");
  if (error.kind === "sandbox_unavailable" || error.kind === "shutting_down") return error;
  return new OwlError("sandbox_unavailable", error.message, { hint: error.hint, facts: error.facts, cause: error });
}
