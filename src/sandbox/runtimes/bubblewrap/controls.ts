/** The controls that tests switch off one by one, to show that each attack would succeed without them. No setting reaches this. */
export type Control =
  | "seccomp"
  | "network"
  | "processes"
  | "system-tree"
  | "nested-namespaces"
  | "environment"
  | "control-groups"
  | "disk-image"
  | "own-uid"
  | "tmp-size"
  | "terminal-limit"
  | "descriptor-limit"
  | "inherited-descriptors";

export type Controls = ReadonlySet<Control>;

export const NONE_OFF: Controls = new Set();
