import { resolve } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { microvmsReport } from "../../bench/sandbox-microvms.ts";
import { runtimesReport } from "../../bench/sandbox-runtimes.ts";
import { missingPackages } from "../../scripts/setup/system-packages.mjs";

const ROOT = resolve(import.meta.dirname, "../..");

describe("the bench of runtimes on a machine that lacks some", () => {
  afterEach(() => void vi.unstubAllEnvs());

  it.each([
    ["engines", ["docker.io", "podman", "mmdebstrap"]],
    ["machines", ["mmdebstrap", "qemu-system-x86"]],
  ])("asks for what its %s need", (stage, names) => {
    vi.stubEnv("PATH", "");
    expect(missingPackages(ROOT, [stage]).map(({ name }) => name)).toEqual(names);
  });

  it("marks their columns, and says why", () => {
    const shell = { name: "shell_exec true", samples: 3, p50Ms: 2, p99Ms: 3 };
    const report = runtimesReport({
      runtimes: [
        { name: "bwrap", cases: [shell] },
        { name: "podman", cases: [{ ...shell, p50Ms: 3, p99Ms: 4 }] },
        { name: "docker", cases: [], absent: "dockerd needs root" },
      ],
      missedPool: 0,
    });
    const [, , row, reason] = report.split("\n");
    expect(row?.trim().split(/\s{2,}/)).toEqual([
      "shell_exec true",
      "2.00",
      "3.00",
      "3.00",
      "4.00",
      "absent",
      "absent",
      "1.50",
      "absent",
    ]);
    expect(reason).toBe("docker is absent: dockerd needs root");
    const runtimes = [{ name: "microsandbox", cases: [], absent: "the machine is made for x64" }];
    expect(microvmsReport({ place: "nowhere", runtimes })).toBe("microVMs are absent: the machine is made for x64");
  });
});
