import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { PROBE_RESOURCES } from "../probe/attack-answer.ts";
import type { InstanceSpec, Resources } from "../runtime.ts";
import type { TestStart } from "../start-trouble.ts";
import type { DockerInstance } from "./docker-instance.ts";
import type { DockerHost } from "./docker-host.ts";
import { discardVolume } from "./reap.ts";
import { startContainer } from "./start-container.ts";

const PROBE_WORKSPACE = "/workspace";

export interface ProbeInstance {
  readonly spec: InstanceSpec;
  start(host: DockerHost, command: readonly string[]): Promise<DockerInstance>;
}

export interface ProbeInstanceOptions {
  readonly resources: Resources;
  readonly signal: AbortSignal;
  /** Whose image is used; absent: the usual one. */
  readonly template?: string;
}

/** Gives a container to try something in, and leaves nothing of it. */
export async function withProbeInstance<T>(
  host: DockerHost,
  { resources, signal, template = "" }: ProbeInstanceOptions,
  attempt: (probe: ProbeInstance) => Promise<T>,
): Promise<T> {
  const id = `probe-${randomBytes(8).toString("hex")}`;
  const folder = join(host.stateFolder, id);
  const spec = { id, folder, template, resources, workspacePath: PROBE_WORKSPACE, volumes: [], env: {} };
  const instances: DockerInstance[] = [];
  const stop = (): void => instances.forEach((instance) => instance.end("stopped"));
  signal.addEventListener("abort", stop, { once: true });
  try {
    const start: ProbeInstance["start"] = async (at, command) => {
      const instance = await startContainer(at, { spec, command, signal });
      instances.push(instance);
      return instance;
    };
    return await attempt({ spec, start });
  } finally {
    signal.removeEventListener("abort", stop);
    await Promise.all(instances.map(async (instance) => await instance.stop()));
    await discardVolume(host, host.ownership.volumeName(folder));
  }
}

/** Whether one starts from a template's image. */
export async function tryContainer(host: DockerHost, trial: TestStart): Promise<void> {
  await withProbeInstance(host, { resources: PROBE_RESOURCES, ...trial }, async (probe) => {
    await probe.start(host, ["/bin/true"]);
  });
}
