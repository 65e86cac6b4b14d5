import type { InstanceUsage, Resources } from "../../runtime.ts";

/** The limits of one cell, kept by the kernel. */
export interface ControlGroup {
  /** Files that a process writes its own id into to join; the launcher does so before anything else runs. */
  readonly joinFiles: readonly string[];
  /** Folders to remove when the cell has ended; recorded, so that another server can do it. */
  readonly folders: readonly string[];
  usage(): Promise<InstanceUsage>;
  /** How often the kernel ended a process in it for want of memory. */
  outOfMemoryKills(): Promise<number>;
  /** In how many periods its processes had to wait because their share of the CPU was spent. */
  throttledPeriods(): Promise<number>;
}

/** A place of the cgroup tree where this server may make groups with limits. */
export interface ControlGroupTree {
  readonly version: 1 | 2;
  /** Folders that hold the cells' groups, to remove when the server ends. */
  readonly folders: readonly string[];
  create(id: string, resources: Resources): Promise<ControlGroup>;
}
