import type { DiskRoom } from "./disk-room.ts";
import type { Flavor } from "./flavors.ts";
import type { PlaceParts, PlacePlan, Places } from "./place.ts";
import type { Pool } from "./pool.ts";
import { type Eviction, fitsBeside, makeRoom, type Occupant, type RoomLimits } from "./room.ts";
import type { Sandbox } from "./sandbox.ts";

export interface SandboxRoomOptions {
  readonly limits: Omit<RoomLimits, "maxTotalDiskBytes">;
  /** Where workspaces lie. */
  readonly disk: DiskRoom;
  readonly defaults: Pick<PlaceParts, "template" | "volumes">;
}

type Occupying = Occupant & { readonly sandbox: Sandbox };

/** What the sandboxes of this server take together, and what they may take. */
export class SandboxRoom {
  readonly #options: SandboxRoomOptions;
  readonly #live: ReadonlyMap<string, Sandbox>;

  constructor(options: SandboxRoomOptions, live: ReadonlyMap<string, Sandbox>) {
    this.#options = options;
    this.#live = live;
  }

  /** Before each sandbox that is made: what is free on a disk changes without notice. */
  async measureDisk(pool: Pool): Promise<void> {
    const folders = [...this.#live.values()].map(({ plan }) => plan.folder);
    await this.#options.disk.measure([...folders, ...pool.folders]);
  }

  /** The idle sandboxes that must end for the new one. Throws when that is not enough. */
  makeFor(places: Places, { ownerId, plan }: { ownerId: string; plan: PlacePlan }): Eviction<Occupying>[] {
    const newcomer = { ownerId, flavor: plan.flavor, diskBytes: places.diskBytesOf(plan) };
    return makeRoom(this.#occupants(places), newcomer, this.#limits());
  }

  /** Whether so many warm ones of the pool fit beside the sandboxes in use. */
  hasFor(places: Places, count: number, flavor: Flavor): boolean {
    const { template, volumes } = this.#options.defaults;
    const diskBytes = places.diskBytesOf({ template, flavor, volumes });
    return fitsBeside(this.#occupants(places), { count, flavor, diskBytes }, this.#limits());
  }

  #limits(): RoomLimits {
    return { ...this.#options.limits, maxTotalDiskBytes: this.#options.disk.capacityBytes };
  }

  #occupants(places: Places): Occupying[] {
    return [...this.#live.values()].map((sandbox) => {
      const { facts, plan, isIdle, lastUsedAtMs } = sandbox;
      const diskBytes = places.diskBytesOf(plan);
      return { sandbox, ownerId: facts.ownerId, flavor: plan.flavor, diskBytes, isIdle, lastUsedAtMs };
    });
  }
}
