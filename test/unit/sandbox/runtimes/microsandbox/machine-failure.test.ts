import { expect, test } from "vitest";
import { OwlError } from "../../../../../src/errors/owl-error.ts";
import {
  explainFullDisk,
  explainMachineError,
} from "../../../../../src/sandbox/runtimes/microsandbox/machine-failure.ts";

test.each([
  ["image error: image not cached: docker.io/library/x:latest", "microsandbox has no image box:1", true, "msb load"],
  ["write failed: No space left on device (os error 28)", "the disk for microVMs is full", true, "Free space"],
  ['[BootStart] failed to start "one": build VM', "a microVM does not start here", false, "msb doctor"],
  ["something else\nin two lines", "microsandbox failed: something else", true, "msb doctor"],
])("%j is told with what to do", (message, told, retryable, hint) => {
  expect(explainMachineError(new Error(message), "box:1")).toMatchObject({
    kind: "sandbox_unavailable",
    message: expect.stringContaining(told),
    retryable,
    hint: expect.stringContaining(hint),
  });
});

test.each([
  new Error("ENOSPC: no space left on device, write"),
  new OwlError("internal", "cannot make a workspace disk: cp: error writing 'x': No space left on device"),
])("a full disk is told as one, whoever met it: %s", (error) => {
  const full = { kind: "sandbox_unavailable", retryable: true, facts: { reason: "disk_full" } };
  expect(explainMachineError(error, "box:1")).toMatchObject(full);
  expect(explainFullDisk(error)).toMatchObject(full);
});

test("what we said ourselves stays as it is", () => {
  const own = new OwlError("invalid_params", "no such volume");
  expect(explainMachineError(own, "box:1")).toBe(own);
  expect(explainFullDisk(own)).toBe(own);
});

test.each([
  ["ENOENT", "there is no /dev/kvm", "modul"],
  ["EACCES", "this user may not open /dev/kvm", "usermod -aG kvm"],
  [undefined, "/dev/kvm is there, and boots nothing", "nested virtualisation"],
])("a machine that does not boot is told with what is wrong with KVM: %s", (code, why, hint) => {
  const openKvm = (): void => {
    if (code !== undefined) throw Object.assign(new Error("no"), { code });
  };
  expect(explainMachineError(new Error("[BootStart] failed"), "box:1", openKvm)).toMatchObject({
    message: expect.stringContaining(why),
    hint: expect.stringContaining(hint),
    facts: { reason: "no_boot" },
  });
});
