import { rm } from "node:fs/promises";
import { OwlError } from "../../../errors/owl-error.ts";
import type { MachineInstance } from "./machine-instance.ts";
import type { MachineHost } from "./machine-host.ts";

/** The machines of this server by the folder of their workspace, for as long as that one is there. */
export class MachineInstances {
  readonly #host: MachineHost;
  readonly #instances = new Map<string, MachineInstance>();
  /** Workspaces that could not be removed: their machine must go before. */
  readonly #unwanted = new Set<string>();

  constructor(host: MachineHost) {
    this.#host = host;
  }

  /** Two machines on one disk would destroy it: rejects while the one before is still there. */
  async clear(folder: string): Promise<void> {
    const instance = this.#instances.get(folder);
    instance?.end("stopped");
    try {
      await instance?.remove();
      await instance?.stop();
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new OwlError("sandbox_unavailable", `the microVM of this workspace cannot be removed: ${reason}`, {
        retryable: true,
        hint: "Call again in a moment; microsandbox keeps its logs in ~/.microsandbox.",
        cause,
      });
    }
  }

  add(folder: string, instance: MachineInstance): void {
    this.#instances.set(folder, instance);
  }

  /** Removes the workspace with everything that belongs to it. What rejects is tried again. */
  async discard(folder: string): Promise<boolean> {
    try {
      await this.clear(folder);
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
      await this.#host.records.removeInstancesOf(folder);
      this.#instances.delete(folder);
      this.#unwanted.delete(folder);
      return true;
    } catch (error) {
      this.#unwanted.add(folder);
      throw error;
    }
  }

  /** Whatever could not be removed before. What cannot now has been told of, and is tried the next time. */
  async tryAgain(): Promise<void> {
    await Promise.allSettled([...this.#host.left].map((machine) => machine.remove()));
    await Promise.allSettled([...this.#unwanted].map((folder) => this.discard(folder)));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#instances.values()].map((instance) => instance.stop()));
    await this.tryAgain();
    const { left, logger } = this.#host;
    if (left.size > 0) logger.error("microVMs are left for the next server to remove", { machines: left.size });
  }
}
