import type { Logger } from "../../../telemetry/logger.ts";
import type { ControlGroupTree } from "./cgroups/limited-groups.ts";
import type { InstanceFolders } from "./instance-folders.ts";
import type { DiskImages } from "./disk-image.ts";
import type { GuestCopies } from "./guest-copy.ts";
import type { Interpreter } from "./interpreters.ts";
import type { Records } from "./records.ts";
import type { UidRange } from "./uid-range.ts";
import type { EmptyPaths } from "../instance-mounts.ts";
import type { TemplateTree } from "../runtime.ts";
import type { WorkspaceWatch } from "../workspace-watch.ts";

export const NONE_OFF: Controls = new Set();

/** What all instances of one server have in common. */
export interface BubblewrapHost {
  readonly serverId: string;
  readonly dataFolder: string;
  /** The runtime's part of the data folder. */
  readonly stateFolder: string;
  readonly guestFolder: string;
  readonly guestCopies: GuestCopies;
  readonly empty: EmptyPaths;
  readonly bwrap: string;
  readonly node: Interpreter;
  readonly python: Interpreter | undefined;
  /** Only when the configuration names one; otherwise the guest looks for the system's browser. */
  readonly browser: Interpreter | undefined;
  readonly templates: Readonly<Record<string, TemplateTree>>;
  readonly seccompFile: string;
  readonly controlGroups: ControlGroupTree | undefined;
  /** Set when the server is root: workspaces then have their own disk and user id. */
  readonly privileges: { readonly images: DiskImages | undefined; readonly uids: UidRange } | undefined;
  readonly workspaceWatch: WorkspaceWatch;
  readonly records: Records;
  readonly folders: InstanceFolders;
  readonly logger: Logger;
  readonly controlsOff: Controls;
}

/** Controls that tests switch off one by one, to show that an attack succeeds without them. No configuration reaches this. */
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
