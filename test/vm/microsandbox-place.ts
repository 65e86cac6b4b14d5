import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { cp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { directOrder, NoBootError, startDirect } from "./direct-place.ts";
import { emulatedOrder, machineScript, startEmulated } from "./emulated-place.ts";
import { makeJobFolder } from "./job-folder.ts";
import { hostsOf, newSite, type KeeperOrder } from "./keeper-order.ts";
import type { KeptPlace } from "./kept-place.ts";
import { microsandboxParts, moveDisks, MSB_HOME } from "./microsandbox-parts.ts";

/** A processor that has virtualisation itself, in software: one is faster than two. */
const PROCESSOR = ["-cpu", "EPYC,svm=on,npt=on", "-smp", "1", "-m", "6144"];

export interface MicrosandboxWish {
  readonly canary: string;
  /** Told once, when it is known where the servers run and why. */
  readonly say: (line: string) => void;
  /** Nothing: directly where this machine boots microVMs, emulated where it does not. */
  readonly way?: string | undefined;
}

/** A whole server with microVMs, and one with bubblewrap beside it when it is asked for. */
export async function startMicrosandboxPlace({ canary, say, way = "" }: MicrosandboxWish): Promise<KeptPlace> {
  if (!["", "direct", "emulated"].includes(way)) throw new Error(`microVMs are direct or emulated, not ${way}`);
  const place = mkdtempSync(join(tmpdir(), "owlclaw-msb-"));
  try {
    chmodSync(place, 0o755);
    const given = { canary, site: newSite(), starts: "microsandbox" } as const;
    const emulated = await emulatedOrder(given);
    const { home } = await fillJob(place, emulated);
    const direct = way === "emulated" ? way : await tryDirect(await directOrder(given, place), home);
    if (typeof direct !== "string") {
      say("microVMs boot on this machine itself");
      return { ...direct, stop: async () => await direct.stop().finally(() => removePlace(place)) };
    }
    if (way === "direct") throw new NoBootError(direct);
    say(`microVMs boot in a machine that is emulated: ${direct === way ? "that is what was asked for" : direct}`);
    return await startEmulated({ order: emulated, place, processor: PROCESSOR });
  } catch (error) {
    removePlace(place);
    throw error;
  }
}

async function fillJob(place: string, order: KeeperOrder): Promise<{ readonly home: string }> {
  const { packages, node, home } = await microsandboxParts();
  await makeJobFolder(join(place, "job"), {
    scripts: { "keeper.mjs": join(import.meta.dirname, "keeper-job.ts") },
    texts: { "run.sh": machineScript(order), hosts: hostsOf(order) },
    node,
    more: {
      "node_modules/microsandbox": join(packages, "node_modules/microsandbox"),
      "node_modules/@superradcompany": join(packages, "node_modules/@superradcompany"),
      msb: home,
    },
  });
  return { home };
}

/** Or why not. */
async function tryDirect(order: KeeperOrder, home: string): Promise<KeptPlace | string> {
  // A copy of its own: what was tried leaves no trace in a machine's.
  await cp(home, order.msb, { recursive: true, verbatimSymlinks: true });
  moveDisks(order.msb, MSB_HOME, order.msb);
  try {
    return await startDirect(order);
  } catch (error) {
    if (!(error instanceof NoBootError)) throw error;
    for (const left of [order.msb, order.volume, join(order.place, "data")])
      rmSync(left, { recursive: true, force: true });
    return error.message;
  }
}

function removePlace(place: string): void {
  rmSync(place, { recursive: true, force: true });
}
