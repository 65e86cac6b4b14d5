import { once } from "node:events";
import { PassThrough } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "../../../telemetry/logger.ts";
import type { GuestStream } from "../guest-stream.ts";
import type { Instance, InstanceExit, InstanceUsage } from "../runtime.ts";
import type { Removable } from "./machine-host.ts";
import { MEMORY_CODE } from "./machine-plan.ts";
import type { ExecHandle, Machine } from "./sdk.ts";

/** A machine whose guest fell silent ends by itself within this time, or is ended. */
const OWN_END_MS = 2000;
const REMOVE_TIMEOUT_MS = 30_000;
const NANOSECONDS_PER_MS = 1e6;
/** What nobody reads is not kept. */
const MAX_UNREAD_BYTES = 64 * 1024;

interface MachineInstanceOptions {
  readonly instanceId: string;
  readonly machine: Machine;
  readonly stream: GuestStream;
  readonly launched: LaunchedProgram;
  readonly endsAtMs: number;
  /** Clears up what was made for it on the host; may be called twice. */
  readonly closeLines: () => Promise<void>;
  /** Takes it up while microsandbox refuses to remove it. */
  readonly left: Set<Removable>;
  readonly logger: Logger;
}

/** The launcher in a machine: what it says about itself, and how it ended. */
export interface LaunchedProgram {
  readonly diagnostics: PassThrough;
  /** No code: the machine is gone. */
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
      // A machine that is gone is an end as well.
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
    // Whoever waits for its end does not wait for a machine that cannot be removed.
    const givenUp = once(this.#givenUp.signal, "abort").then(() => null);
    this.exited = Promise.race([launched.ended, givenUp]).then((code) => this.#exit(code));
    void this.#removeAfterEnd();
  }

  /** Ends everything in it, without waiting. */
  end(reason: InstanceExit["reason"]): void {
    // A guest that fell silent before it was told to had another reason.
    if (!this.stream.readableEnded) this.#endReason ??= reason;
    // Whoever needs it gone asks for that; the others read of it in the log.
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
    // The host does not see processes of a machine.
    return { memoryBytes, cpuMs: vcpuTimeNs / NANOSECONDS_PER_MS, pids: 0 };
  }

  /** A machine without its guest is of no use, and would stay. What the guest said last is read before. */
  async #removeAfterEnd(): Promise<void> {
    await this.exited;
    const read = new Promise((resolve) => this.stream.once("end", resolve).once("close", resolve));
    const isRead = this.stream.readableEnded || this.stream.destroyed;
    if (!isRead) await Promise.race([read, delay(OWN_END_MS, undefined, { ref: false })]);
    this.end("stopped");
  }

  async #remove(): Promise<void> {
    const { machine, closeLines, left, logger } = this.#options;
    // A guest whose input ends writes its files to the disk and ends; why it ended is known only when it has.
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
      await closeLines();
    }
  }

  #exit(code: number | null): InstanceExit {
    if (this.#endReason !== undefined) return { code, signal: null, reason: this.#endReason };
    return code === MEMORY_CODE ? { code, signal: null, reason: "memory" } : { code, signal: null };
  }
}

/** One that is gone already is what was wanted. */
export async function destroyMachine(machine: Pick<Machine, "destroy">): Promise<void> {
  try {
    await machine.destroy({ force: true, timeoutMs: REMOVE_TIMEOUT_MS });
  } catch (error) {
    if (!(error instanceof Error && /not found|NotFound/i.test(`${error.name} ${error.message}`))) throw error;
  }
}
