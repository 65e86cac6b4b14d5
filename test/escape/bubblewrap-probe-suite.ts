import { afterEach, describe, expect, it } from "vitest";
import type { Control } from "../../src/sandbox/runtimes/bubblewrap/bubblewrap-host.ts";
import { CHECK_NAMES, type CheckName } from "../../src/sandbox/runtimes/probe/checks.ts";
import { type Lab, NO_ABORT, openLab } from "./bubblewrap-instances.ts";

/** Each attack of the probe, and the controls without which it succeeds. */
const ATTACKS: ReadonlyArray<readonly [CheckName, readonly Control[]]> = [
  ["server-files", ["system-tree", "own-uid"]],
  ["host-processes", ["processes"]],
  ["host-network", ["network"]],
  ["host-sockets", ["network"]],
  ["read-only-system", ["system-tree"]],
  ["privileges", ["seccomp"]],
  ["nested-namespaces", ["seccomp", "nested-namespaces"]],
  ["mounts", ["seccomp", "nested-namespaces"]],
  ["system-calls", ["seccomp"]],
  ["server-environment", ["environment"]],
  ["workspace-limit", ["disk-image"]],
  ["tmp-limit", ["tmp-size"]],
  // For an ordinary user without a group it stands for RLIMIT_NPROC as well.
  ["process-limit", ["control-groups"]],
];

const ROOT_ATTACKS: typeof ATTACKS = [
  ["memory-limit", ["control-groups"]],
  ["cpu-limit", ["control-groups"]],
];

export function defineProbeSuite(identity: { readonly name: string; readonly unkept: readonly CheckName[] }): void {
  describe(`the probe, as ${identity.name}`, () => {
    let lab: Lab | undefined;
    afterEach(async () => await lab?.close());

    it("finds every property kept that this user can have", async () => {
      // Workspaces that are no disks are measured, on a slow machine in the middle of an attack: here they always are.
      lab = await openLab({ watchIntervalMs: 1 });
      const { checks } = await lab.runtime.probe(NO_ABORT);
      const broken = checks.filter((check) => !check.holds);
      expect(broken.map((check) => check.name).toSorted()).toEqual([...identity.unkept].toSorted());
      expect(checks.map((check) => check.name)).toEqual(["start", ...CHECK_NAMES]);
      expect(broken.every((check) => check.severity === "limit" && check.fix !== undefined)).toBe(true);
    });

    it("says nothing about the isolation when its time is over: that may pass", async () => {
      lab = await openLab();
      await expect(lab.runtime.probe(AbortSignal.timeout(1))).rejects.toMatchObject({
        kind: "sandbox_unavailable",
        retryable: true,
      });
    });

    const attacks = identity.unkept.length === 0 ? [...ATTACKS, ...ROOT_ATTACKS] : ATTACKS;
    it.each(attacks)("%s: the attack succeeds without %j", async (name, off) => {
      lab = await openLab({ off });
      const { checks } = await lab.runtime.probe(NO_ABORT);
      expect(checks.find((check) => check.name === name)).toMatchObject({ holds: false });
    });
  });
}
