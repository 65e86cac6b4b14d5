import { readdir, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { attachedDisks } from "./runtimes/bubblewrap/loop-devices.ts";

const BLOCK_BYTES = 512;
const IMAGE = /\.img$/;

export interface DiskCapacityOptions {
  readonly dataFolder: string;
  /** Stays free for the ledger and everything else that the server itself writes. */
  readonly reserveBytes: number;
}

/** How much the workspaces on the disk of the data folder may hold together. Their images are sparse: what they may hold is not taken yet. */
export class DiskCapacity {
  readonly #options: DiskCapacityOptions;
  #capacityBytes = 0;

  constructor(options: DiskCapacityOptions) {
    this.#options = options;
  }

  /** As measured last. */
  get capacityBytes(): number {
    return this.#capacityBytes;
  }

  /**
   * What the workspaces in these folders may hold together: the space that is free beside the reserve, and what they hold
   * already. What disks of other servers on the same data folder may still grow by is left out.
   */
  async measure(folders: readonly string[]): Promise<number> {
    const { dataFolder, reserveBytes } = this.#options;
    const [{ bavail, bsize }, own, disks] = await Promise.all([
      statfs(dataFolder),
      Promise.all(folders.map(heldIn)),
      attachedDisks(),
    ]);
    const others = disks
      .map(({ file }) => file)
      .filter((file) => file.startsWith(`${dataFolder}/`) && !folders.some((folder) => file.startsWith(`${folder}/`)));
    const promised = await Promise.all(others.map(growthOf));
    this.#capacityBytes = Math.max(0, bavail * bsize - reserveBytes + sum(own) - sum(promised));
    return this.#capacityBytes;
  }
}

/** A workspace that is a folder counts as empty: that refuses earlier than necessary, and never too late. */
async function heldIn(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  const sizes = names
    .filter((name) => IMAGE.test(name))
    .map((name) =>
      stat(join(folder, name)).then(
        ({ blocks }) => blocks * BLOCK_BYTES,
        // It was removed meanwhile.
        () => 0,
      ),
    );
  return sum(await Promise.all(sizes));
}

async function growthOf(image: string): Promise<number> {
  const { size, blocks } = await stat(image).catch(() => ({ size: 0, blocks: 0 }));
  return Math.max(0, size - blocks * BLOCK_BYTES);
}

function sum(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total + size, 0);
}
