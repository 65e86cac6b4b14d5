import { describe, expect, test } from "vitest";
import { kernelFaults, nodeVersion, type ClockFacts, clockCheck } from "../../../src/cli/doctor/machine-probes.ts";
import { userNamespaces } from "../../../src/cli/doctor/isolation-probe.ts";

describe("Node's version", () => {
  test.each([
    ["18.20.0", "failed"],
    ["20.18.3", "failed"],
    ["20.19.0", "ok"],
    ["24.1.0", "ok"],
  ])("%s is %s", (version, status) => {
    expect(nodeVersion(version).status).toBe(status);
  });
});

describe("user namespaces", () => {
  const settings = (found: Record<string, string>) => (path: string) => found[path.split("/").at(-1) ?? ""];

  describe.each([
    ["Ubuntu's AppArmor restriction", { apparmor_restrict_unprivileged_userns: "1" }, /AppArmor/],
    ["Debian's old switch", { unprivileged_userns_clone: "0" }, /only root/],
    ["a kernel that allows none", { max_user_namespaces: "0" }, /allows no/],
  ])("%s", (_what, found, message) => {
    const read = settings(found);

    test("is why bubblewrap does not start, with what to do, for root too", () => {
      expect(userNamespaces("fails", read)).toMatchObject({
        status: "failed",
        message: expect.stringMatching(message),
        fix: expect.stringContaining("sysctl"),
      });
    });

    test("is nothing to repair where bubblewrap starts, as with a profile of its own", () => {
      expect(userNamespaces("starts", read)).toEqual({
        category: "isolation",
        name: "user namespaces",
        status: "ok",
        message: expect.stringMatching(new RegExp(`${message.source}.*, and bubblewrap may`)),
      });
    });

    test("is a warning where nobody tried", () => {
      expect(userNamespaces("untried", read).status).toBe("warning");
    });
  });

  test.each(["starts", "fails", "untried"] as const)("a machine without restrictions is well: %s", (bubblewrap) => {
    expect(userNamespaces(bubblewrap, () => undefined).status).toBe("ok");
  });
});

describe("the clock", () => {
  const nowMs = Date.parse("2026-11-16T12:00:00Z");
  const hours = (count: number): number => nowMs + count * 3_600_000;
  const well: ClockFacts = { nowMs, installedAtMs: hours(-100), recordedAtMs: hours(-1) };

  test.each<[string, Partial<ClockFacts>, string, RegExp]>([
    ["before the installation", { installedAtMs: hours(25) }, "failed", /before this program was installed/],
    ["hours behind the records", { recordedAtMs: hours(2) }, "failed", /records were written at 2026-11-16T14:00/],
    ["set by nobody", { isKept: false }, "warning", /no time service has set it/],
    ["kept by a time service", { isKept: true }, "ok", /kept by a time service/],
    ["with nothing to hold it against", { recordedAtMs: undefined }, "ok", /^the clock says 2026-11-16T12:00:00/],
    ["corrected by some seconds", { recordedAtMs: nowMs + 30_000 }, "ok", /^the clock says/],
  ])("%s", (_what, facts, status, message) => {
    const check = clockCheck({ ...well, ...facts });
    expect(check).toMatchObject({ name: "clock", status, message: expect.stringMatching(message) });
    expect(check.fix !== undefined).toBe(status !== "ok");
  });
});

test("a kernel that is known to fail under sandboxes is named, and no other", () => {
  const text = (version: string): string => `#1 SMP PREEMPT_DYNAMIC Debian ${version} (2026-11-10)`;
  expect(kernelFaults(text("6.1.192-1"))).toMatchObject([{ name: "kernel", status: "warning" }]);
  for (const version of ["6.1.176-1", "6.1.192-10", "6.1.193-1", "6.12.192-1"])
    expect(kernelFaults(text(version))).toEqual([]);
});
