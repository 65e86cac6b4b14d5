import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readHierarchies } from "../../src/sandbox/runtimes/bubblewrap/cgroups/control-groups.ts";
import type { Place } from "../e2e/sandbox-client.ts";
import { processesOf, processesOfUser } from "./sandbox-lab.ts";

/** What the kernel still has of servers that ended: all of it must be nothing. */
export interface Running {
  readonly processes: readonly string[];
  readonly mounts: readonly string[];
  readonly loopDevices: readonly string[];
}

export const NOTHING_RUNS: Running = { processes: [], mounts: [], loopDevices: [] };

export function runningOf({ dataFolder, account }: Place, ids: readonly string[]): Running {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  const processes = account === undefined ? processesOf(ids) : processesOfUser(account.uid);
  return {
    processes: processes.map(({ pid, command, state }) => `${pid} ${state} ${command}`),
    mounts: mounts.filter((line) => line.includes(dataFolder)),
    loopDevices: loopFiles().filter((file) => file.includes(dataFolder)),
  };
}

/** Files and groups: a server removes its own when it stops, and those of a killed one when it starts. */
export interface Kept {
  readonly sandboxes: readonly string[];
  readonly cells: readonly string[];
  readonly uids: readonly string[];
  readonly guests: readonly string[];
  readonly groups: readonly string[];
  /** Folders with sockets of the egress proxy. */
  readonly doors: readonly string[];
  /** Sockets for the operator's commands. */
  readonly controls: readonly string[];
}

export const NOTHING_KEPT: Kept = {
  sandboxes: [],
  cells: [],
  uids: [],
  guests: [],
  groups: [],
  doors: [],
  controls: [],
};

export async function keptOf({ dataFolder }: Place, ids: readonly string[]): Promise<Kept> {
  return {
    sandboxes: namesIn(join(dataFolder, "sandboxes")),
    cells: namesIn(join(dataFolder, "bubblewrap", "cells")),
    uids: namesIn(join(dataFolder, "bubblewrap", "uids")),
    guests: namesIn(join(dataFolder, "bubblewrap", "guests")),
    groups: await groupsOf(ids),
    doors: namesIn(join(dataFolder, "egress")),
    controls: namesIn(join(dataFolder, "control")),
  };
}

/** The sandboxes that the kernel counts memory for, and the bytes that these servers' sandboxes have, or left to nobody. */
export interface Charged {
  readonly cells: readonly string[];
  readonly bytes: number;
}

export async function chargedTo(ids: readonly string[]): Promise<Charged> {
  const { v1, v2 } = await readHierarchies();
  const parents = [v1.get("memory"), v2?.mountPoint, v2?.ownFolder].filter((folder) => folder !== undefined);
  const groups = parents.flatMap((parent) => namesIn(parent).map((name) => join(parent, name)));
  const own = groups.filter((group) => ids.some((id) => group.includes(id)));
  return {
    cells: own.flatMap(namesIn).filter((name) => name.startsWith("owl-")),
    bytes: own.map(memoryOf).reduce((sum, bytes) => sum + bytes, 0),
  };
}

/** Without pages of files, such as the browser's own program: they stay with whoever read them first, and are nobody's. */
function memoryOf(group: string): number {
  const file = namesIn(group).find((name) => name === "memory.usage_in_bytes" || name === "memory.current");
  if (file === undefined) return 0;
  const stat = readFileSync(join(group, "memory.stat"), "utf8");
  // The names of version 1, and those of version 2.
  const fileBytes = statField(stat, "total_cache") ?? statField(stat, "file") ?? 0;
  const sharedBytes = statField(stat, "total_shmem") ?? statField(stat, "shmem") ?? 0;
  return Number(readFileSync(join(group, file), "utf8")) - (fileBytes - sharedBytes);
}

function statField(stat: string, name: string): number | undefined {
  const found = new RegExp(`^${name} (\\d+)$`, "m").exec(stat)?.[1];
  return found === undefined ? undefined : Number(found);
}

async function groupsOf(ids: readonly string[]): Promise<string[]> {
  const { v1, v2 } = await readHierarchies();
  const parents = [...v1.values(), ...(v2 === undefined ? [] : [v2.mountPoint, v2.ownFolder])];
  return parents.flatMap(namesIn).filter((name) => ids.some((id) => name.includes(id)));
}

function loopFiles(): string[] {
  return namesIn("/sys/block")
    .filter((name) => name.startsWith("loop"))
    .map((name) => {
      try {
        return readFileSync(`/sys/block/${name}/loop/backing_file`, "utf8").trim();
      } catch {
        // No file is behind it.
        return "";
      }
    });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // It was never made, or is gone.
    return [];
  }
}
