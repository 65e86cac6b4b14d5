import { join } from "node:path";
import type { ControlGroupTree } from "./control-group.ts";
import { readHierarchies } from "./mounted-hierarchies.ts";
import { adoptScope } from "./systemd-scope.ts";
import { openVersion1Tree } from "./version-1.ts";
import { openVersion2Tree } from "./version-2.ts";

/** Every folder that opening may make: written down before, so that a server that dies meanwhile leaves none unknown. */
export async function plannedGroups(serverName: string): Promise<string[]> {
  const hierarchies = await readHierarchies().catch(() => undefined);
  if (hierarchies === undefined) return [];
  const { v1, v2 } = hierarchies;
  const parents = [...v1.values(), ...(v2 === undefined ? [] : [v2.mountPoint, v2.ownFolder])];
  return [...new Set(parents)].map((parent) => join(parent, serverName));
}

/** The part of the machine's cgroups in which this server can limit cells; `undefined` when it has none. */
export async function openControlGroups(serverName: string): Promise<ControlGroupTree | undefined> {
  const hierarchies = await readHierarchies().catch(() => undefined);
  if (hierarchies === undefined) return undefined;
  if (process.getuid?.() !== 0 && hierarchies.v2 !== undefined && (await adoptScope(serverName))) {
    return await openVersion2Tree(await readHierarchies(), serverName);
  }
  return (await openVersion2Tree(hierarchies, serverName)) ?? (await openVersion1Tree(hierarchies, serverName));
}
