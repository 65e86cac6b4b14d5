import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { endGroups } from "../../../../../src/sandbox/runtimes/bubblewrap/cgroups/limited-groups.ts";

let folder = "";
let children: ChildProcess[] = [];

// The clocks stand still until a test moves them; the pauses between two looks are real.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "performance"] });
  folder = mkdtempSync(join(tmpdir(), "owlclaw-group-"));
  setMembers("");
});
afterEach(() => {
  vi.useRealTimers();
  for (const child of children) child.kill("SIGKILL");
  children = [];
  rmSync(folder, { recursive: true, force: true });
});

/** At once, as the kernel shows them: half a number would be another process. */
function setMembers(text: string): void {
  writeFileSync(`${folder}.draft`, text);
  renameSync(`${folder}.draft`, join(folder, "cgroup.procs"));
}

/** Resolves when the members of the group were looked at once more: the process that is in it now is killed. */
async function lookedAt(): Promise<void> {
  const child = spawn("sleep", ["1000"]);
  children.push(child);
  await once(child, "spawn");
  const exit = once(child, "exit");
  setMembers(`${child.pid}\n`);
  expect(await exit).toEqual([null, "SIGKILL"]);
  setMembers("");
}

/** The kernel removes the files of a group with it; a plain folder must be empty for that. */
function letGo(): void {
  rmSync(join(folder, "cgroup.procs"));
}

test("a process that takes long to exit is waited for, as its disk is", async () => {
  const ending = endGroups([folder, join(folder, "never-was")]);
  await lookedAt();
  vi.advanceTimersByTime(50_000);
  await lookedAt();
  letGo();
  expect(await ending).toBe(true);
  expect(existsSync(folder)).toBe(false);
});

test("a clock that is set anew ends no patience", async () => {
  const ending = endGroups([folder]);
  await lookedAt();
  vi.setSystemTime(Date.now() + 86_400_000);
  await lookedAt();
  letGo();
  expect(await ending).toBe(true);
});

test("one that does not end at all is given up after a minute", async () => {
  const ending = endGroups([folder]);
  await lookedAt();
  vi.advanceTimersByTime(61_000);
  expect(await ending).toBe(false);
  expect(existsSync(folder)).toBe(true);
});
