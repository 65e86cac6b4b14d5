import { once } from "node:events";
import { PassThrough } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "../../../telemetry/logger.ts";
import type { GuestStream } from "../guest-stream.ts";
import type { Instance, InstanceExit, InstanceUsage } from "../runtime.ts";
import type { Removable } from "./machine-host.ts";
import { MEMORY_CODE } from "./machine-plan.ts";
import type { ExecHandle, Machine } from "./sdk.ts";

/** A machine whose guest has closed its output ends by itself within this time, or is destroyed. */
const OWN_END_MS = 2000;
const REMOVE_TIMEOUT_MS = 30_000;
const NANOSECONDS_PER_MS = 1e6;
/** Unread diagnostics above this size are dropped. */
const MAX_UNREAD_BYTES = 64 * 1024;

interface MachineInstanceOptions {
  readonly instanceId: string;
  readonly machine: Machine;
  readonly stream: GuestStream;
  readonly launched: LaunchedProgram;
  readonly endsAtMs: number;
  /** Closes its sockets on the host; may be called twice. */
  readonly closeSockets: () => Promise<void>;
  /** Contains the machine while its removal fails. */
  readonly left: Set<Removable>;
  readonly logger: Logger;
}

/** The launcher in a machine. */
export interface LaunchedProgram {
  readonly diagnostics: PassThrough;
  /** The exit code; null: the machine is gone. */
  readonly ended: Promise<number | null>;
}

export function followLauncher(handle: ExecHandle): LaunchedProgram {
  const diagnostics = new PassThrough();
  const follow = async (): Promise<number | null> => {
    try {
      for (;;) {
        const event = await handle.recv();
        if (event === null) return null;
        if (event.kind === "exited") return event.code;
        if (event.kind === "stderr" && diagnostics.writableLength < MAX_UNREAD_BYTES) diagnostics.write(event.data);
      }
    } catch {
      // The machine is gone.
      return null;
    } finally {
      diagnostics.end();
    }
  };
  return { diagnostics, ended: follow() };
}

/** One running microVM with the guest in it. */
export class MachineInstance implements Instance, Removable {
  readonly id: string;
  readonly stream: GuestStream;
  readonly diagnostics: PassThrough;
  readonly endsAtMs: number;
  readonly exited: Promise<InstanceExit>;
  readonly #options: MachineInstanceOptions;
  readonly #givenUp = new AbortController();
  #endReason: InstanceExit["reason"];
  #removed: Promise<void> | undefined;

  constructor(options: MachineInstanceOptions) {
    const { instanceId, stream, launched, endsAtMs } = options;
    this.id = instanceId;
    this.stream = stream;
    this.diagnostics = launched.diagnostics;
    this.endsAtMs = endsAtMs;
    this.#options = options;
    // When the machine cannot be removed, `exited` resolves nevertheless.
    const givenUp = once(this.#givenUp.signal, "abort").then(() => null);
    this.exited = Promise.race([launched.ended, givenUp]).then((code) => this.#exit(code));
    void this.#removeAfterEnd();
  }

  /** Removes the machine, without waiting. */
  end(reason: InstanceExit["reason"]): void {
    // A guest whose output ended before had another reason.
    if (!this.stream.readableEnded) this.#endReason ??= reason;
    // A failure is logged and retried.
    this.remove().catch(() => undefined);
  }

  remove(): Promise<void> {
    this.#removed ??= this.#remove().catch((error: unknown) => {
      this.#removed = undefined;
      throw error;
    });
    return this.#removed;
  }

  async stop(): Promise<void> {
    this.end("stopped");
    await this.#removed?.catch(() => undefined);
    await this.exited;
    this.stream.destroy();
    this.diagnostics.destroy();
  }

  async usage(): Promise<InstanceUsage> {
    const { memoryBytes, vcpuTimeNs } = await this.#options.machine.metrics();
    // Processes of a machine are not visible on the host.
    return { memoryBytes, cpuMs: vcpuTimeNs / NANOSECONDS_PER_MS, pids: 0 };
  }

  /** Removes the machine when its guest has exited and its last output is read. */
  async #removeAfterEnd(): Promise<void> {
    await this.exited;
    const read = new Promise((resolve) => this.stream.once("end", resolve).once("close", resolve));
    const isRead = this.stream.readableEnded || this.stream.destroyed;
    if (!isRead) await Promise.race([read, delay(OWN_END_MS, undefined, { ref: false })]);
    this.end("stopped");
  }

  async #remove(): Promise<void> {
    const { machine, closeSockets, left, logger } = this.#options;
    // At the end of its input the guest writes its files to the disk and exits; its exit code is read before the machine is destroyed.
    this.stream.end();
    await Promise.race([this.exited, delay(OWN_END_MS, undefined, { ref: false })]);
    try {
      await destroyMachine(machine);
      left.delete(this);
      logger.info("microVM removed", { sandbox: this.id });
    } catch (error) {
      if (!left.has(this)) logger.error("a microVM is left until microsandbox removes it", { sandbox: this.id, error });
      left.add(this);
      this.#givenUp.abort();
      throw error;
    } finally {
      await closeSockets();
    }
  }

  #exit(code: number | null): InstanceExit {
    if (this.#endReason !== undefined) return { code, signal: null, reason: this.#endReason };
    return code === MEMORY_CODE ? { code, signal: null, reason: "memory" } : { code, signal: null };
  }
}

/** A machine that does not exist any more is no error. */
export async function destroyMachine(machine: Pick<Machine, "destroy">): Promise<void> {
  try {
    await machine.destroy({ force: true, timeoutMs: REMOVE_TIMEOUT_MS });
  } catch (error) {
    if (!(error instanceof Error && /not found|NotFound/i.test(`${error.name} ${error.message}`))) throw error;
  }
}
