import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { expect, onTestFinished, test } from "vitest";
import { mintToken } from "../../src/auth/mint-token.ts";
import { call, connectHttp, makePlace, type Place, Server } from "../e2e/sandbox-client.ts";
import { isRoot } from "./bubblewrap-instances.ts";
import { type Inside, openInside } from "./sandbox-lab.ts";

const SECRET = "a secret that is long enough for tests";
/** With the reserve of 1 GiB, the workspace of one small sandbox (2 GiB) fits, and not that of a second. */
const DISK_SIZE = "3700M";

/** A data folder on a file system of its own. */
function placeOnSmallDisk(): Place {
  const place = makePlace();
  const image = join(place.folder, "disk.img");
  mkdirSync(place.dataFolder, { mode: 0o700 });
  execFileSync("truncate", ["-s", DISK_SIZE, image]);
  execFileSync("mkfs.ext4", ["-q", "-m", "0", "-O", "^has_journal", image]);
  execFileSync("mount", ["-o", "loop", image, place.dataFolder]);
  onTestFinished(() => void execFileSync("umount", ["-l", place.dataFolder]));
  return place;
}

async function startOnSmallDisk(): Promise<{ as(subject: string): Promise<Client>; stop(): Promise<unknown> }> {
  const server = new Server(placeOnSmallDisk(), { auth: { enabled: true, jwt: { secret: SECRET } } });
  const url = await server.url();
  onTestFinished(() => void server.stop());
  return {
    as: async (subject) => {
      const token = await mintToken({ secret: SECRET, subject, scopes: [], expiresInSeconds: 600 });
      return connectHttp(url, { authorization: `Bearer ${token}` });
    },
    stop: () => server.stop(),
  };
}

/** Writes into the workspace until nothing more fits, and is busy until it is told to end. */
function fill(inside: Inside): Promise<unknown> {
  const command = "cat /dev/zero > full 2> /dev/null; touch /tmp/filled; while [ ! -e /tmp/done ]; do sleep 0.05; done";
  return inside.call("shell_exec", { command, timeout_seconds: 240 });
}

test.skipIf(!isRoot)(
  "sandboxes that are promised more than the disk has cannot fill it (only root can mount a disk)",
  async () => {
    const server = await startOnSmallDisk();
    const [ada, mallory] = [await server.as("ada"), await server.as("mallory")];
    const filling: Promise<unknown>[] = [];
    const sandboxes: Inside[] = [];
    const refusals: unknown[] = [];
    for (let count = 0; count < 3 && refusals.length === 0; count++) {
      const inside = await openInside(mallory).catch((error: unknown) => void refusals.push(error));
      if (inside === undefined) continue;
      sandboxes.push(inside);
      filling.push(fill(inside));
      await expect.poll(() => inside.sh("ls full")).toBe("full\n");
    }
    for (const inside of sandboxes)
      await expect.poll(() => inside.sh("ls /tmp/filled 2> /dev/null"), { timeout: 200_000 }).toBe("/tmp/filled\n");
    // Each of these needs room for its row in the ledger.
    for (let count = 0; count < 20; count++) expect((await call(ada, "sandbox_list")).isError).toBeUndefined();
    expect(sandboxes).toHaveLength(1);
    expect(String(refusals[0])).toContain("sandbox.diskReserveMb");
    await expect(call(ada, "sandbox_create")).rejects.toMatchObject({
      data: { kind: "resource_limit", limit: "sandbox.diskReserveMb" },
    });
    for (const inside of sandboxes) await inside.sh("touch /tmp/done");
    await Promise.all(filling);
    // Idle now: the client with the most makes room for one that has none.
    expect((await (await openInside(ada)).sh("echo mine")).trim()).toBe("mine");
    await server.stop();
  },
);
