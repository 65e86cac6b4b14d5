import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createVersion2Group } from "../../../../../src/sandbox/runtimes/bubblewrap/cgroups/limited-groups.ts";

// A plain folder in place of the kernel's: it shows what is written and read, not that a kernel obeys.
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "owlclaw-group-"));
});
afterEach(async () => await rm(folder, { recursive: true }));

it("writes every limit of a cell in the form of version 2", async () => {
  const place = join(folder, "cell");
  const group = await createVersion2Group(place, { cpus: 1.5, memoryBytes: 1000, maxPids: 7, diskBytes: 0 });
  const written = async (name: string): Promise<string> => await readFile(join(place, name), "utf8");
  expect([await written("memory.max"), await written("cpu.max"), await written("pids.max")]).toEqual([
    "1000",
    "150000 100000",
    "7",
  ]);
  expect(group.joinFiles).toEqual([join(place, "cgroup.procs")]);
});

it("reads usage, ends for want of memory and throttling, and nothing from a group that is gone", async () => {
  const place = join(folder, "cell");
  const group = await createVersion2Group(place, { cpus: 1, memoryBytes: 1000, maxPids: 7, diskBytes: 0 });
  expect(await group.usage()).toEqual({ memoryBytes: 0, cpuMs: 0, pids: 0 });
  await writeFile(join(place, "memory.current"), "4096\n");
  await writeFile(join(place, "cpu.stat"), "usage_usec 2500\nuser_usec 1\nnr_throttled 3\n");
  await writeFile(join(place, "pids.current"), "5\n");
  await writeFile(join(place, "memory.events"), "low 0\noom 2\noom_kill 1\n");
  expect(await group.usage()).toEqual({ memoryBytes: 4096, cpuMs: 2.5, pids: 5 });
  expect([await group.outOfMemoryKills(), await group.throttledPeriods()]).toEqual([1, 3]);
});
