import { join } from "node:path";
import type { Logger } from "../../../telemetry/logger.ts";
import type { DiskImages } from "../bubblewrap/disk-image.ts";
import type { Records } from "../bubblewrap/records.ts";
import type { Ownership } from "../docker/ownership.ts";
import type { TemplateTree } from "../runtime.ts";
import type { MicrosandboxSdk } from "./sdk.ts";

/** Everything that microVMs of one server have in common. */
export interface MachineHost {
  readonly sdk: MicrosandboxSdk;
  readonly logger: Logger;
  readonly dataFolder: string;
  readonly stateFolder: string;
  /** For sockets that machines call. */
  readonly linesFolder: string;
  readonly ownership: Ownership;
  readonly records: Records;
  readonly disks: DiskImages;
  readonly imageOf: (template: string) => string;
  readonly templates: Readonly<Record<string, TemplateTree>>;
  /** The guest, as it was when this server started. Machines see it read-only. */
  readonly guestFolder: string;
  /** With the server's own Node in it; absent: the image has one. */
  readonly nodeFolder: string | undefined;
  /** After this time a machine ends by itself, whatever became of the server. */
  readonly maxDurationSeconds: number;
  /** Machines that microsandbox refused to remove. */
  readonly left: Set<Removable>;
}

export interface Removable {
  /** Rejects when it is not; then it may be called again. */
  remove(): Promise<void>;
}

/** What one server has below the state folder. */
export function serverFolders(
  stateFolder: string,
  serverId: string,
): { readonly lines: string; readonly guest: string } {
  if (!/^[A-Za-z0-9_-]{1,200}$/.test(serverId))
    throw new RangeError(`not an id of a server: ${JSON.stringify(serverId)}`);
  return { lines: join(stateFolder, "lines", serverId), guest: join(stateFolder, "guests", serverId) };
}
