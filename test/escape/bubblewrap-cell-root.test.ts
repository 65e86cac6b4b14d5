import { stat } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { findProcess, isRoot, type Lab, MIB, newMarker, openLab } from "./bubblewrap-instances.ts";
import { defineCellSuite } from "./bubblewrap-cell-suite.ts";

// What root has can be shown by root alone; the twin of this file runs for every user.
describe("with every privilege", () => {
  beforeEach((context) => {
    if (!isRoot) context.skip("only root can show what root has");
  });
  defineCellSuite("root");

  let lab: Lab | undefined;
  afterEach(async () => await lab?.close());

  it("starts where every limit is required", async () => {
    lab = await openLab({ limits: "required" });
    expect((await (await lab.start()).run("true")).code).toBe(0);
  });

  it("says that memory ran out when the kernel ended the guest for it", async () => {
    lab = await openLab();
    const inside = await lab.start({ resources: { cpus: 1, memoryBytes: 96 * MIB, maxPids: 64, diskBytes: 64 * MIB } });
    inside.send(
      "bash",
      "-c",
      "echo 1000 > /proc/$PPID/oom_score_adj; head -c 200M /dev/zero | tail -c 150M > /dev/null",
    );
    expect(await inside.cell.exited).toMatchObject({ code: 137, reason: "memory" });
  });

  it("runs each cell under a user id of its own", async () => {
    lab = await openLab();
    const uids = new Set<number | undefined>([0]);
    for (const marker of [newMarker(), newMarker()]) {
      (await lab.start()).send("sleep", marker);
      const process = await vi.waitFor(async () => {
        const found = await findProcess(marker);
        expect(found).toBeDefined();
        return found ?? "";
      }, 20_000);
      uids.add((await stat(process)).uid);
    }
    expect(uids.size).toBe(3);
  });

  it("stops a workspace that is full, without ending the cell", async () => {
    lab = await openLab();
    const inside = await lab.start();
    const filled = await inside.run("bash", "-c", "head -c 200M /dev/zero > big");
    expect(filled.stderr).toContain("No space left on device");
    expect((await inside.run("bash", "-c", "rm big && echo fine > small && cat small")).stdout).toBe("fine\n");
  });
});
