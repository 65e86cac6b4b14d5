import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { PROBE_RESOURCES } from "../probe/attack-answer.ts";
import type { InstanceSpec, Resources } from "../runtime.ts";
import type { TestStart } from "../start-trouble.ts";
import type { MachineInstance } from "./machine-instance.ts";
import type { MachineHost } from "./machine-host.ts";
import { startMachine } from "./start-machine.ts";

export const PROBE_WORKSPACE = "/workspace";
/** A machine needs some for its kernel. */
export const MACHINE_PROBE_RESOURCES: Resources = { ...PROBE_RESOURCES, cpus: 1, memoryBytes: 256 * 1024 * 1024 };

export interface ProbeMachine {
  readonly spec: InstanceSpec;
  readonly start: (command: readonly string[]) => Promise<MachineInstance>;
}

/** Gives a machine to try something in, and leaves nothing of it. */
export async function withProbeMachine<T>(
  host: MachineHost,
  { template, signal }: TestStart,
  attempt: (machine: ProbeMachine) => Promise<T>,
): Promise<T> {
  const id = `probe-${randomBytes(8).toString("hex")}`;
  const folder = join(host.stateFolder, id);
  const common = { id, folder, template, resources: MACHINE_PROBE_RESOURCES, workspacePath: PROBE_WORKSPACE };
  const spec: InstanceSpec = { ...common, volumes: [], env: {} };
  let instance: MachineInstance | undefined;
  const stop = (): void => instance?.end("stopped");
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await attempt({
      spec,
      start: async (command) => {
        instance = await startMachine(host, { spec, command, signal });
        return instance;
      },
    });
  } finally {
    signal.removeEventListener("abort", stop);
    await instance?.stop();
    await rm(folder, { recursive: true, force: true });
    await host.records.removeInstancesOf(folder);
  }
}

/** Whether one starts from a template's image. */
export async function tryMachine(host: MachineHost, trial: TestStart): Promise<void> {
  await withProbeMachine(host, trial, async (machine) => {
    await machine.start(["/bin/sh", "-c", ":"]);
  });
}
