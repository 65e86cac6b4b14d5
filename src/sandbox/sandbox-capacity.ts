import type { DiskCapacity } from "./disk-capacity.ts";
import type { Flavor } from "./flavors.ts";
import type { InstanceOptions, InstancePlan, InstanceStarter } from "./instance-starter.ts";
import type { Pool } from "./pool.ts";
import { type Eviction, fitsBeside, chooseEvictions, type SandboxSize, type CapacityLimits } from "./eviction.ts";
import type { Sandbox } from "./sandbox.ts";

export interface SandboxCapacityOptions {
  readonly limits: Omit<CapacityLimits, "maxTotalDiskBytes">;
  /** Where workspaces lie. */
  readonly disk: DiskCapacity;
  readonly defaults: Pick<InstanceOptions, "template" | "volumes">;
}

type SizedSandbox = SandboxSize & { readonly sandbox: Sandbox };

/** What the sandboxes of this server take together, and what they may take. */
export class SandboxCapacity {
  readonly #options: SandboxCapacityOptions;
  readonly #live: ReadonlyMap<string, Sandbox>;

  constructor(options: SandboxCapacityOptions, live: ReadonlyMap<string, Sandbox>) {
    this.#options = options;
    this.#live = live;
  }

  /** Before each sandbox that is made: what is free on a disk changes without notice. */
  async measureDisk(pool: Pool): Promise<void> {
    const folders = [...this.#live.values()].map(({ plan }) => plan.folder);
    await this.#options.disk.measure([...folders, ...pool.folders]);
  }

  /** The idle sandboxes that must end for the new one. Throws when that is not enough. */
  evictionsFor(
    starter: InstanceStarter,
    { ownerId, plan }: { ownerId: string; plan: InstancePlan },
  ): Eviction<SizedSandbox>[] {
    const newcomer = { ownerId, flavor: plan.flavor, diskBytes: starter.diskBytesOf(plan) };
    return chooseEvictions(this.#occupants(starter), newcomer, this.#limits());
  }

  /** Whether so many warm ones of the pool fit beside the sandboxes in use. */
  fits(starter: InstanceStarter, count: number, flavor: Flavor): boolean {
    const { template, volumes } = this.#options.defaults;
    const diskBytes = starter.diskBytesOf({ template, flavor, volumes });
    return fitsBeside(this.#occupants(starter), { count, flavor, diskBytes }, this.#limits());
  }

  #limits(): CapacityLimits {
    return { ...this.#options.limits, maxTotalDiskBytes: this.#options.disk.capacityBytes };
  }

  #occupants(starter: InstanceStarter): SizedSandbox[] {
    return [...this.#live.values()].map((sandbox) => {
      const { facts, plan, isIdle, lastUsedAtMs } = sandbox;
      const diskBytes = starter.diskBytesOf(plan);
      return { sandbox, ownerId: facts.ownerId, flavor: plan.flavor, diskBytes, isIdle, lastUsedAtMs };
    });
  }
}
