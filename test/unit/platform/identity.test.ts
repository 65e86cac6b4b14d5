import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect, onTestFinished, test, vi } from "vitest";
import { identifyProcess, identifySelf, isAlive, isSharerAlive } from "../../../src/platform/process-identity.ts";

const fieldsOf = (pid: number): string[] => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];

test("an identity is that of one process alone: neither its number, its start nor the boot is enough", () => {
  const self = identifyProcess(process.pid)!;
  expect(isAlive(self)).toBe(true);
  expect(isAlive({ ...self, startTicks: "1" })).toBe(false);
  expect(isAlive({ ...self, bootId: "another" })).toBe(false);
  expect(isAlive({ ...self, pid: 1 })).toBe(false);
  expect(identifyProcess(2 ** 30)).toBeUndefined();
});

test("who shares a store is known by number and start, and not at all in another container", () => {
  const self = identifySelf();
  expect(isSharerAlive(self)).toBe(true);
  expect(isSharerAlive({ ...self, startedAt: "1" })).toBe(false);
  expect(isSharerAlive({ ...self, startedAt: "" })).toBe(true);
  expect(isSharerAlive({ ...self, pid: 2 ** 30 })).toBe(false);
  expect(isSharerAlive({ ...self, namespace: "another" })).toBeUndefined();
});

test("a process that has ended counts as dead while its parent has not noticed", async () => {
  // `exec` leaves a parent that never asks about its child.
  const parent = spawn("sh", ["-c", "sleep 60 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
  onTestFinished(() => void parent.kill("SIGKILL"));
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  const pid = Number(line.toString());
  // Before its `exec` the shell would ask.
  await vi.waitFor(() => expect(readFileSync(`/proc/${parent.pid}/comm`, "utf8")).toBe("sleep\n"), 20_000);
  const identity = identifyProcess(pid)!;
  const sharer = { ...identifySelf(), pid, startedAt: identity.startTicks };
  expect([isAlive(identity), isSharerAlive(sharer)]).toEqual([true, true]);

  process.kill(pid, "SIGKILL");
  await vi.waitFor(() => expect(fieldsOf(pid)[0]).toBe("Z"), 20_000);

  expect([isAlive(identity), isSharerAlive(sharer)]).toEqual([false, false]);
  expect(isSharerAlive({ ...sharer, startedAt: "" })).toBe(false);
  expect(identifyProcess(pid)).toBeUndefined();
});
