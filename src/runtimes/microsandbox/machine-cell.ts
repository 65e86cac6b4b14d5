import { PassThrough } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { CellStream } from "../cell-stream.ts";
import type { Cell, CellExit, CellUsage } from "../runtime.ts";
import { MEMORY_CODE } from "./machine-plan.ts";
import type { ExecHandle, Machine } from "./sdk.ts";

/** A machine whose guest fell silent ends by itself within this time, or is ended. */
const OWN_END_MS = 2000;
const REMOVE_TIMEOUT_MS = 30_000;
const NANOSECONDS_PER_MS = 1e6;
/** What nobody reads is not kept. */
const MAX_UNREAD_BYTES = 64 * 1024;

export interface MachineCellOptions {
  readonly cellId: string;
  readonly machine: Machine;
  readonly stream: CellStream;
  readonly launched: LaunchedProgram;
  /** Clears up what was made for it on the host. */
  readonly onGone: () => Promise<void>;
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
export class MachineCell implements Cell {
  readonly id: string;
  readonly stream: CellStream;
  readonly diagnostics: PassThrough;
  readonly exited: Promise<CellExit>;
  readonly #machine: Machine;
  readonly #onGone: () => Promise<void>;
  #endReason: CellExit["reason"];
  #removed: Promise<void> | undefined;

  constructor({ cellId, machine, stream, launched, onGone }: MachineCellOptions) {
    this.id = cellId;
    this.stream = stream;
    this.diagnostics = launched.diagnostics;
    this.#machine = machine;
    this.#onGone = onGone;
    this.exited = launched.ended.then((code) => this.#exit(code));
    void this.#removeAfterEnd();
  }

  /** Ends everything in it, without waiting. */
  end(reason: CellExit["reason"]): void {
    // A guest that fell silent before it was told to had another reason.
    if (!this.stream.readableEnded) this.#endReason ??= reason;
    this.#removed ??= this.#remove();
  }

  async stop(): Promise<void> {
    this.end("stopped");
    await this.#removed;
    await this.exited;
    this.stream.destroy();
    this.diagnostics.destroy();
  }

  async usage(): Promise<CellUsage> {
    const { memoryBytes, vcpuTimeNs } = await this.#machine.metrics();
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
    // A guest whose input ends writes its files to the disk and ends; why it ended is known only when it has.
    this.stream.end();
    await Promise.race([this.exited, delay(OWN_END_MS, undefined, { ref: false })]);
    await destroyMachine(this.#machine);
    await this.#onGone();
  }

  #exit(code: number | null): CellExit {
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
