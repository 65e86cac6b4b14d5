import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { emulatedOrder, machineScript, startEmulated } from "./emulated-place.ts";
import { makeJobFolder } from "./job-folder.ts";
import { hostsOf, newSite } from "./keeper-order.ts";
import type { KeptPlace } from "./kept-place.ts";

/** Two, since a limit of one is to be seen. */
const PROCESSORS = ["-cpu", "max", "-smp", "2", "-m", "3072"];

/** A server with bubblewrap in a machine whose kernel has cgroup version 2. */
export async function startControlGroupsPlace(canary: string): Promise<KeptPlace> {
  const place = mkdtempSync(join(tmpdir(), "owlclaw-vm-"));
  try {
    const order = await emulatedOrder({ canary, site: newSite(), starts: "bubblewrap" });
    await makeJobFolder(join(place, "job"), {
      scripts: {
        "keeper.mjs": join(import.meta.dirname, "keeper-job.ts"),
        "limits.mjs": join(import.meta.dirname, "limits-job.ts"),
        "unit.mjs": join(import.meta.dirname, "unit-job.ts"),
      },
      texts: { "run.sh": machineScript(order), hosts: hostsOf(order) },
      node: process.execPath,
      more: { "owlclaw.service": join(import.meta.dirname, "../../deploy/systemd/owlclaw.service") },
    });
    return await startEmulated({ order, place, processor: PROCESSORS });
  } catch (error) {
    rmSync(place, { recursive: true, force: true });
    throw error;
  }
}
