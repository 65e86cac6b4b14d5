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

/** What all cells of one server share. */
export interface BubblewrapHost {
  readonly serverId: string;
  readonly dataFolder: string;
  /** The runtime's own part of the data folder. */
  readonly stateFolder: string;
  /** This server's own copy of the guest. */
  readonly guestFolder: string;
  readonly guestCopies: GuestCopies;
  readonly empty: EmptyPaths;
  readonly bwrap: string;
  readonly node: Interpreter;
  readonly python: Interpreter | undefined;
  /** Where the operator names one; the guest finds the system's own by itself. */
  readonly browser: Interpreter | undefined;
  readonly templates: Readonly<Record<string, TemplateTree>>;
  readonly seccompFile: string;
  readonly controlGroups: ControlGroupTree | undefined;
  /** Only root can give a workspace a disk and a user id of its own. */
  readonly privileges: { readonly images: DiskImages | undefined; readonly uids: UidRange } | undefined;
  readonly workspaceWatch: WorkspaceWatch;
  readonly records: Records;
  readonly folders: InstanceFolders;
  readonly logger: Logger;
  readonly controlsOff: Controls;
}

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
