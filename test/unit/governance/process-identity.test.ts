import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect, onTestFinished, test, vi } from "vitest";
import { isAlive, ownIdentity } from "../../../src/governance/limits/process-identity.ts";

const fieldsOf = (pid: number): string[] => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];

test("a process that has ended counts as dead while its parent has not noticed", async () => {
  // `exec` leaves a parent that never asks about its child.
  const parent = spawn("sh", ["-c", "sleep 0.3 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
  onTestFinished(() => void parent.kill("SIGKILL"));
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  const pid = Number(line.toString());
  const identity = { ...ownIdentity(), pid, startedAt: fieldsOf(pid)[19] ?? "" };
  expect(isAlive(identity)).toBe(true);

  await vi.waitFor(() => expect(fieldsOf(pid)[0]).toBe("Z"), { timeout: 5000 });

  expect(isAlive(identity)).toBe(false);
  expect(isAlive({ ...identity, startedAt: "" })).toBe(false);
});
