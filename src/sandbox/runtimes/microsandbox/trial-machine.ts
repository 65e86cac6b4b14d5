import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { PROBE_RESOURCES } from "../probe/attack-answer.ts";
import type { CellSpec, Resources } from "../runtime.ts";
import type { Trial } from "../start-trouble.ts";
import type { MachineCell } from "./machine-cell.ts";
import type { MachineHost } from "./machine-host.ts";
import { startMachine } from "./start-machine.ts";

export const TRIAL_WORKSPACE = "/workspace";
/** A machine needs some for its kernel. */
export const TRIAL_RESOURCES: Resources = { ...PROBE_RESOURCES, cpus: 1, memoryBytes: 256 * 1024 * 1024 };

export interface TrialMachine {
  readonly spec: CellSpec;
  readonly start: (command: readonly string[]) => Promise<MachineCell>;
}

/** Gives a machine to try something in, and leaves nothing of it. */
export async function withTrialMachine<T>(
  host: MachineHost,
  { template, signal }: Trial,
  attempt: (machine: TrialMachine) => Promise<T>,
): Promise<T> {
  const id = `probe-${randomBytes(8).toString("hex")}`;
  const folder = join(host.stateFolder, id);
  const common = { id, folder, template, resources: TRIAL_RESOURCES, workspacePath: TRIAL_WORKSPACE };
  const spec: CellSpec = { ...common, volumes: [], env: {} };
  let cell: MachineCell | undefined;
  const stop = (): void => cell?.end("stopped");
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await attempt({
      spec,
      start: async (command) => {
        cell = await startMachine(host, { spec, command, signal });
        return cell;
      },
    });
  } finally {
    signal.removeEventListener("abort", stop);
    await cell?.stop();
    await rm(folder, { recursive: true, force: true });
    await host.records.removeCellsOf(folder);
  }
}

/** Whether one starts from a template's image. */
export async function tryMachine(host: MachineHost, trial: Trial): Promise<void> {
  await withTrialMachine(host, trial, async (machine) => {
    await machine.start(["/bin/sh", "-c", ":"]);
  });
}
