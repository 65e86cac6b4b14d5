import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { PROBE_RESOURCES } from "../probe/attack-answer.ts";
import type { CellSpec, Resources } from "../runtime.ts";
import type { Trial } from "../start-trouble.ts";
import type { DockerCell } from "./docker-cell.ts";
import type { DockerHost } from "./docker-host.ts";
import { discardVolume } from "./reap.ts";
import { startContainer } from "./start-container.ts";

const TRIAL_WORKSPACE = "/workspace";

export interface TrialPlace {
  readonly spec: CellSpec;
  start(host: DockerHost, command: readonly string[]): Promise<DockerCell>;
}

export interface TrialOptions {
  readonly resources: Resources;
  readonly signal: AbortSignal;
  /** Whose image is used; absent: the usual one. */
  readonly template?: string;
}

/** Gives a container to try something in, and leaves nothing of it. */
export async function withTrialCell<T>(
  host: DockerHost,
  { resources, signal, template = "" }: TrialOptions,
  attempt: (place: TrialPlace) => Promise<T>,
): Promise<T> {
  const id = `probe-${randomBytes(8).toString("hex")}`;
  const folder = join(host.stateFolder, id);
  const spec = { id, folder, template, resources, workspacePath: TRIAL_WORKSPACE, volumes: [], env: {} };
  const cells: DockerCell[] = [];
  const stop = (): void => cells.forEach((cell) => cell.end("stopped"));
  signal.addEventListener("abort", stop, { once: true });
  try {
    const start: TrialPlace["start"] = async (at, command) => {
      const cell = await startContainer(at, { spec, command, signal });
      cells.push(cell);
      return cell;
    };
    return await attempt({ spec, start });
  } finally {
    signal.removeEventListener("abort", stop);
    await Promise.all(cells.map(async (cell) => await cell.stop()));
    await discardVolume(host, host.ownership.volumeName(folder));
  }
}

/** Whether one starts from a template's image. */
export async function tryContainer(host: DockerHost, trial: Trial): Promise<void> {
  await withTrialCell(host, { resources: PROBE_RESOURCES, ...trial }, async (place) => {
    await place.start(host, ["/bin/true"]);
  });
}
