import type { Resources } from "./runtimes/runtime.ts";

const GIB = 1024 ** 3;

export const FLAVORS = {
  small: { cpus: 1, memoryBytes: GIB, maxPids: 256, diskBytes: 2 * GIB },
  medium: { cpus: 2, memoryBytes: 2 * GIB, maxPids: 512, diskBytes: 4 * GIB },
  large: { cpus: 4, memoryBytes: 4 * GIB, maxPids: 1024, diskBytes: 8 * GIB },
} as const satisfies Record<string, Resources>;

export type Flavor = keyof typeof FLAVORS;
