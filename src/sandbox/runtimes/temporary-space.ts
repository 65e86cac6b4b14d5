import type { Resources } from "./runtime.ts";

const MAX_SHM_BYTES = 64 * 1024 * 1024;

/** Memory for `/tmp` and `/dev/shm`: what is written there must leave some for programs. */
export function temporarySpace({ diskBytes, memoryBytes }: Resources): {
  readonly tmpBytes: number;
  readonly shmBytes: number;
} {
  const tmpBytes = Math.min(diskBytes, Math.floor(memoryBytes / 2));
  return { tmpBytes, shmBytes: Math.min(MAX_SHM_BYTES, tmpBytes) };
}
