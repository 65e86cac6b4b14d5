import { join } from "node:path";
import type { Logger } from "../../../telemetry/logger.ts";
import type { DiskImages } from "../bubblewrap/disk-image.ts";
import type { Records } from "../bubblewrap/records.ts";
import type { Ownership } from "../docker/ownership.ts";
import type { TemplateTree } from "../runtime.ts";
import type { MicrosandboxSdk } from "./sdk.ts";

/** What all microVMs of one server have in common. */
export interface MachineHost {
  readonly sdk: MicrosandboxSdk;
  readonly logger: Logger;
  readonly dataFolder: string;
  readonly stateFolder: string;
  /** For sockets to which machines connect. */
  readonly socketsFolder: string;
  readonly ownership: Ownership;
  readonly records: Records;
  readonly disks: DiskImages;
  readonly imageOf: (template: string) => string;
  readonly templates: Readonly<Record<string, TemplateTree>>;
  /** This server's copy of the guest; mounted read-only. */
  readonly guestFolder: string;
  /** The folder with the server's Node; absent: the image has one. */
  readonly nodeFolder: string | undefined;
  /** After this time a machine ends by itself, also when the server is dead. */
  readonly maxDurationSeconds: number;
  /** Machines whose removal has failed. */
  readonly left: Set<Removable>;
}

export interface Removable {
  /** May be called again after it has rejected. */
  remove(): Promise<void>;
}

/** The folders of one server below the state folder. */
export function serverFolders(
  stateFolder: string,
  serverId: string,
): { readonly sockets: string; readonly guest: string } {
  if (!/^[A-Za-z0-9_-]{1,200}$/.test(serverId))
    throw new RangeError(`not an id of a server: ${JSON.stringify(serverId)}`);
  return { sockets: join(stateFolder, "lines", serverId), guest: join(stateFolder, "guests", serverId) };
}
