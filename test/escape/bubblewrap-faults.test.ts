import { randomBytes } from "node:crypto";
import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { readHierarchies } from "../../src/sandbox/runtimes/bubblewrap/cgroups/control-groups.ts";
import { attachedDisks, waitUntilDetached } from "../../src/sandbox/runtimes/bubblewrap/disk-image.ts";
import { type Lab, openLab } from "./bubblewrap-instances.ts";
import { bundleServer, openServerPlace, type ServerPlace } from "./bubblewrap-server-process.ts";

const ROUNDS = 10;

/** What the kernel has left to write goes to a disk that other tests keep busy. */
const DETACH_TIMEOUT_MS = 180_000;

describe("a server that is killed at any moment", () => {
  let bundle = "";
  let place: ServerPlace | undefined;
  let lab: Lab | undefined;
  beforeAll(async () => {
    bundle = await bundleServer();
  });
  afterEach(async () => {
    await lab?.close();
    await place?.close();
  });

  it("leaves no process, mount, loop device or group behind, whatever it was doing", async () => {
    place = await openServerPlace(bundle);
    const { dataFolder } = place;
    const servers: string[] = [];
    const workspacePath = `/w${dataFolder.slice(-6)}`;
    for (let round = 0; round < ROUNDS; round += 1) {
      const serverId = `fault${randomBytes(6).toString("hex")}`;
      servers.push(serverId);
      const starting = place.start({ cells: 20, workspacePath, serverId });
      // Spread over a server's start, the starts of its first cells, and its work.
      await delay((round / ROUNDS) * 900);
      place.killAll();
      await starting;
    }
    await vi.waitFor(async () => expect(await processesIn(workspacePath)).toEqual([]), {
      timeout: 20_000,
      interval: 10,
    });
    expect(await readFile("/proc/self/mountinfo", "utf8")).not.toContain(dataFolder);
    // Only a bwrap whose other half was killed before it let this half go on: nobody's code runs in it yet, and it
    // waits until the next server ends it.
    const onlyWaiting = async (): Promise<void> =>
      expect((await programsThatSee(dataFolder)).filter((name) => name !== "bwrap")).toEqual([]);
    await vi.waitFor(onlyWaiting, { timeout: 20_000, interval: 50 });

    lab = await openLab({ dataFolder });
    await lab.runtime.reap();
    expect(await programsThatSee(dataFolder)).toEqual([]);
    expect(await waitUntilDetached(dataFolder, DETACH_TIMEOUT_MS)).toBe(true);
    const state = join(dataFolder, "bubblewrap");
    expect(await readdir(join(dataFolder, "workspaces")).catch(() => [])).toEqual([]);
    expect(await readdir(join(state, "cells"))).toEqual([]);
    expect(await readdir(join(state, "servers"))).toEqual([`${lab.options.serverId}.json`]);
    expect(await readdir(join(state, "uids")).catch(() => [])).toEqual([]);
    expect(await groupsOf(servers)).toEqual([]);
    expect((await (await lab.start()).run("echo", "works")).stdout).toBe("works\n");
  }, 300_000);
});

/** Processes whose folder is the workspace with this name, which no other cell has. */
async function processesIn(workspacePath: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir("/proc")) {
    const folder = /^\d+$/.test(entry) ? await readlink(`/proc/${entry}/cwd`).catch(() => "") : "";
    if (folder.startsWith(workspacePath)) found.push(entry);
  }
  return found;
}

async function groupsOf(servers: readonly string[]): Promise<string[]> {
  const { v1, v2 } = await readHierarchies();
  const parents = [...v1.values(), ...(v2 === undefined ? [] : [v2.mountPoint, v2.ownFolder])];
  const names = await Promise.all(parents.map(async (parent) => await readdir(parent)));
  return names.flat().filter((name) => servers.some((server) => name.includes(server)));
}

/** Processes with a disk below the folder mounted, in whatever namespace. */
async function programsThatSee(folder: string): Promise<string[]> {
  const devices = (await attachedDisks()).filter(({ file }) => file.startsWith(folder)).map(({ device }) => device);
  const found: string[] = [];
  for (const entry of devices.length === 0 ? [] : await readdir("/proc")) {
    const mounts = /^\d+$/.test(entry) ? await readFile(`/proc/${entry}/mountinfo`, "utf8").catch(() => "") : "";
    const sees = devices.some((device) => mounts.includes(` ${device} `));
    if (sees) found.push((await readFile(`/proc/${entry}/comm`, "utf8").catch(() => "")).trim());
  }
  return found.filter((name) => name !== "");
}
