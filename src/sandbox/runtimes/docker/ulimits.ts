/** Set even where something else limits the same: Podman asks for more by itself than it may be able to give. */
export const ULIMITS: ReadonlyArray<{ readonly Name: string; readonly Soft: number; readonly Hard: number }> = [
  ulimit("nofile", 4096),
  ulimit("nproc", 16_384),
  ulimit("core", 0),
];

export function ulimit(Name: string, value: number): { Name: string; Soft: number; Hard: number } {
  return { Name, Soft: value, Hard: value };
}
