import { totalmem } from "node:os";
import { OwlError } from "../errors/owl-error.ts";
import { type Flavor, FLAVORS } from "./flavors.ts";

const MIB = 1024 ** 2;
/**
 * Flavors are ceilings, and an idle sandbox uses a thirtieth of its own: counting them in full would leave most of the
 * machine empty. Twice the memory is what may be promised when the operator says nothing.
 */
const OVERCOMMIT = 2;

export interface RoomLimits {
  readonly maxPerPrincipal: number;
  readonly maxTotal: number;
  readonly maxTotalMemoryMb: number;
  /** Otherwise nobody leaves, and the newcomer is refused. */
  readonly evictsIdle: boolean;
}

export interface Occupant {
  readonly ownerId: string;
  readonly flavor: Flavor;
  readonly isIdle: boolean;
  readonly lastUsedAtMs: number;
}

export function memoryMbOf(flavor: Flavor): number {
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

/** Those that must go for the new one, least recently used first; only idle ones. Throws when that is not enough. */
export function makeRoom<T extends Occupant>(
  occupants: readonly T[],
  newcomer: { readonly ownerId: string; readonly flavor: Flavor },
  limits: RoomLimits,
): T[] {
  const leaving: T[] = [];
  const allBusy = limits.evictsIdle ? ", all of them busy" : "";
  const staying = (): T[] => occupants.filter((each) => !leaving.includes(each));
  const evict = (candidates: readonly T[], refusal: () => OwlError): void => {
    const idle = candidates.filter(({ isIdle }) => isIdle).toSorted((a, b) => a.lastUsedAtMs - b.lastUsedAtMs);
    const [oldest] = idle;
    if (oldest === undefined || !limits.evictsIdle) throw refusal();
    leaving.push(oldest);
  };
  const mine = (): T[] => staying().filter(({ ownerId }) => ownerId === newcomer.ownerId);
  while (mine().length >= limits.maxPerPrincipal)
    evict(mine(), () => refused("sandbox.maxPerPrincipal", limits.maxPerPrincipal, `you have${allBusy}`));
  while (staying().length >= limits.maxTotal)
    evict(staying(), () => refused("sandbox.maxTotal", limits.maxTotal, `the server has${allBusy}`));
  const neededMb = memoryMbOf(newcomer.flavor);
  while (memoryOf(staying()) + neededMb > limits.maxTotalMemoryMb)
    evict(staying(), () => refused("sandbox.maxTotalMemoryMb", limits.maxTotalMemoryMb, "MiB of memory are promised"));
  return leaving;
}

function memoryOf(occupants: readonly Occupant[]): number {
  return occupants.reduce((sum, { flavor }) => sum + memoryMbOf(flavor), 0);
}

function refused(key: string, limit: number, what: string): OwlError {
  return new OwlError("resource_limit", `there is no room for another sandbox: ${limit} ${what} (${key})`, {
    facts: { limit: key, maximum: limit },
    hint: "destroy a sandbox that you no longer need with sandbox_destroy, or wait until a call ends",
  });
}
