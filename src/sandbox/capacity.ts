import { totalmem } from "node:os";
import { OwlError } from "../errors/owl-error.ts";
import { type Flavor, FLAVORS } from "./flavors.ts";
import { readdir, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { attachedDisks } from "./runtimes/bubblewrap/disk-image.ts";
import type { InstanceOptions, InstancePlan, InstanceStarter } from "./instance-starter.ts";
import type { Pool } from "./pool.ts";
import type { Sandbox } from "./sandbox.ts";

const MIB = 1024 ** 2;
/**
 * The default for `maxTotalMemoryMb` is twice the memory of the machine: flavors are limits, and an idle sandbox uses about a
 * thirtieth of its memory.
 */
const OVERCOMMIT = 2;
const BLOCK_BYTES = 512;
const IMAGE = /\.img$/;

interface CapacityLimits {
  readonly maxPerPrincipal: number;
  readonly maxTotal: number;
  readonly maxTotalMemoryMb: number;
  /** For all workspaces together; measured before each new sandbox. */
  readonly maxTotalDiskBytes: number;
  /** Whether idle sandboxes are evicted for a new one. */
  readonly evictsIdle: boolean;
}

export interface SandboxSize {
  readonly ownerId: string;
  readonly flavor: Flavor;
  /** The disk quota of its workspace; 0 when it is not on the data folder's disk. */
  readonly diskBytes: number;
  readonly isIdle: boolean;
  readonly lastUsedAtMs: number;
}

function memoryMbOf(flavor: Flavor): number {
  return FLAVORS[flavor].memoryBytes / MIB;
}

/** Inside a container its limit counts, not the host's memory. */
export function memoryLimitMb(configuredMb: number): number {
  if (configuredMb > 0) return configuredMb;
  const constrained = process.constrainedMemory();
  const machine = totalmem();
  const bytes = constrained > 0 && constrained < machine ? constrained : machine;
  return Math.floor((bytes / MIB) * OVERCOMMIT);
}

/** A sandbox that must end, and the reason for its owner. */
interface Eviction<T extends SandboxSize> {
  readonly occupant: T;
  readonly why: string;
}

interface Limit {
  readonly key: "sandbox.maxPerPrincipal" | "sandbox.maxTotal" | "sandbox.maxTotalMemoryMb" | "sandbox.diskReserveMb";
  readonly maximum: number;
  /** What the limit counts, for the error message. */
  readonly counted: string;
}

/**
 * The idle sandboxes that must end for the new one: first the requester's own, least recently used first; then those of the
 * principal that has the most, if that is more than the requester has. Throws when that is not enough.
 */
export function chooseEvictions<T extends SandboxSize>(
  occupants: readonly T[],
  newcomer: Pick<SandboxSize, "ownerId" | "flavor" | "diskBytes">,
  limits: CapacityLimits,
): Eviction<T>[] {
  const evicted: Eviction<T>[] = [];
  let staying = occupants;
  const isMine = ({ ownerId }: SandboxSize): boolean => ownerId === newcomer.ownerId;
  const evict = (limit: Limit, sizeOf: (of: readonly Sized[]) => number, candidates: () => readonly T[]): void => {
    const own = leastRecentlyUsed(candidates().filter(isMine));
    const before = sizeOf(occupants.filter(isMine));
    const after = sizeOf([...staying.filter(isMine), newcomer]);
    const victim = own ?? leastRecentlyUsed(ofLargestOwner(candidates(), newcomer.ownerId, { sizeOf, before, after }));
    if (victim === undefined || !limits.evictsIdle) throw refused(limit, limits.evictsIdle);
    evicted.push({ occupant: victim, why: whyEvicted(limit, victim === own) });
    staying = staying.filter((each) => each !== victim);
  };
  const mine = (): readonly T[] => staying.filter(isMine);
  const countOf = (of: readonly Sized[]): number => of.length;
  const { maxPerPrincipal, maxTotal, maxTotalMemoryMb, maxTotalDiskBytes } = limits;
  while (mine().length >= maxPerPrincipal)
    evict({ key: "sandbox.maxPerPrincipal", maximum: maxPerPrincipal, counted: "you have" }, countOf, mine);
  while (staying.length >= maxTotal)
    evict({ key: "sandbox.maxTotal", maximum: maxTotal, counted: "the server has" }, countOf, () => staying);
  const memory: Limit = {
    key: "sandbox.maxTotalMemoryMb",
    maximum: maxTotalMemoryMb,
    counted: "MiB of memory are promised",
  };
  while (memoryOf(staying) + memoryMbOf(newcomer.flavor) > maxTotalMemoryMb) evict(memory, memoryOf, () => staying);
  const disk: Limit = {
    key: "sandbox.diskReserveMb",
    maximum: Math.floor(maxTotalDiskBytes / MIB),
    counted: "MiB of the disk are left for the workspaces of all sandboxes",
  };
  while (newcomer.diskBytes > 0 && diskOf(staying) + newcomer.diskBytes > maxTotalDiskBytes)
    evict(disk, diskOf, () => staying.filter(({ diskBytes }) => diskBytes > 0));
  return evicted;
}

/** Whether `count` more fit without an eviction. */
function fitsBeside(
  occupants: readonly SandboxSize[],
  more: { readonly count: number; readonly flavor: Flavor; readonly diskBytes: number },
  limits: CapacityLimits,
): boolean {
  const { count, flavor } = more;
  const diskBytes = count * more.diskBytes;
  return (
    occupants.length + count <= limits.maxTotal &&
    memoryOf(occupants) + count * memoryMbOf(flavor) <= limits.maxTotalMemoryMb &&
    (diskBytes === 0 || diskOf(occupants) + diskBytes <= limits.maxTotalDiskBytes)
  );
}

type Sized = Pick<SandboxSize, "flavor" | "diskBytes">;

interface Sizes {
  readonly sizeOf: (of: readonly Sized[]) => number;
  /** The size of the requester's sandboxes without and with the new one. */
  readonly before: number;
  readonly after: number;
}

function leastRecentlyUsed<T extends SandboxSize>(occupants: readonly T[]): T | undefined {
  const [oldest] = occupants.filter(({ isIdle }) => isIdle).toSorted((a, b) => a.lastUsedAtMs - b.lastUsedAtMs);
  return oldest;
}

/**
 * All sandboxes of the largest owners. An owner counts when it has an idle sandbox, has more than the requester, and at least as
 * much as the requester will have.
 */
function ofLargestOwner<T extends SandboxSize>(
  occupants: readonly T[],
  requesterId: string,
  { sizeOf, before, after }: Sizes,
): readonly T[] {
  const byOwner = new Map<string, T[]>();
  for (const each of occupants) byOwner.set(each.ownerId, [...(byOwner.get(each.ownerId) ?? []), each]);
  byOwner.delete(requesterId);
  const others = [...byOwner.values()]
    .map((group) => ({ group, size: sizeOf(group) }))
    .filter(({ group, size }) => size > before && size >= after && group.some(({ isIdle }) => isIdle));
  const most = Math.max(...others.map(({ size }) => size));
  return others.filter(({ size }) => size === most).flatMap(({ group }) => group);
}

function whyEvicted({ key, maximum }: Limit, isOwn: boolean): string {
  const whose = isOwn ? "another of your sandboxes" : "a sandbox of a client that has fewer than you";
  return `it was idle and was evicted to make room for ${whose}, at the limit ${key} (${maximum})`;
}

function memoryOf(occupants: readonly Sized[]): number {
  return occupants.reduce((sum, { flavor }) => sum + memoryMbOf(flavor), 0);
}

function diskOf(occupants: readonly Sized[]): number {
  return occupants.reduce((sum, { diskBytes }) => sum + diskBytes, 0);
}

function refused({ key, maximum, counted }: Limit, evictsIdle: boolean): OwlError {
  const left = { "sandbox.maxPerPrincipal": ", all of them busy", "sandbox.maxTotal": ", none of them may be evicted" };
  const detail = evictsIdle && (key === "sandbox.maxPerPrincipal" || key === "sandbox.maxTotal") ? left[key] : "";
  return new OwlError(
    "resource_limit",
    `there is no room for another sandbox: ${maximum} ${counted}${detail} (${key})`,
    {
      facts: { limit: key, maximum },
      hint: "destroy a sandbox that you no longer need with sandbox_destroy, or wait until a call ends",
    },
  );
}

interface DiskCapacityOptions {
  readonly dataFolder: string;
  /** Stays free for the ledger and other files of the server. */
  readonly reserveBytes: number;
}

/** The space for all workspaces on the disk of the data folder. Their images are sparse: they take less than their quota. */
export class DiskCapacity {
  readonly #options: DiskCapacityOptions;
  #capacityBytes = 0;

  constructor(options: DiskCapacityOptions) {
    this.#options = options;
  }

  /** The result of the last measurement. */
  get capacityBytes(): number {
    return this.#capacityBytes;
  }

  /**
   * The space for the workspaces in these folders: the free space less the reserve, plus the space that they take already, less
   * the space by which disks of other servers on the same data folder may still grow.
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

/** A workspace without an image counts as empty: new sandboxes are then refused too early, never too late. */
async function heldIn(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  const sizes = names
    .filter((name) => IMAGE.test(name))
    .map((name) =>
      stat(join(folder, name)).then(
        ({ blocks }) => blocks * BLOCK_BYTES,
        // It has been removed.
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

export interface SandboxCapacityOptions {
  readonly limits: Omit<CapacityLimits, "maxTotalDiskBytes">;
  /** The disk of the data folder. */
  readonly disk: DiskCapacity;
  readonly defaults: Pick<InstanceOptions, "template" | "volumes">;
}

type SizedSandbox = SandboxSize & { readonly sandbox: Sandbox };

/** The limits for all sandboxes of this server, and their use. */
export class SandboxCapacity {
  readonly #options: SandboxCapacityOptions;
  readonly #live: ReadonlyMap<string, Sandbox>;

  constructor(options: SandboxCapacityOptions, live: ReadonlyMap<string, Sandbox>) {
    this.#options = options;
    this.#live = live;
  }

  /** Called before each new sandbox: other programs use the disk too. */
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

  /** Whether `count` instances of the warm pool fit beside the sandboxes in use. */
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
