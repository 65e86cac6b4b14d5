import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Where this process stands in each mounted hierarchy: a controller's name (or `""` for version 2) to its folder. */
export interface MountedHierarchies {
  /** Version 1: folders by controller. */
  readonly v1: ReadonlyMap<string, string>;
  readonly v2?: { readonly mountPoint: string; readonly ownFolder: string };
}

export async function readHierarchies(): Promise<MountedHierarchies> {
  const [mounts, groups] = await Promise.all([
    readFile("/proc/self/mountinfo", "utf8"),
    readFile("/proc/self/cgroup", "utf8"),
  ]);
  return parseHierarchies(mounts, groups);
}

export function parseHierarchies(mountInfo: string, ownGroups: string): MountedHierarchies {
  const own = parseOwnGroups(ownGroups);
  const v1 = new Map<string, string>();
  let v2: MountedHierarchies["v2"];
  for (const { type, mountPoint, root, superOptions } of parseMounts(mountInfo)) {
    if (type === "cgroup2") {
      v2 = { mountPoint, ownFolder: folderIn({ mountPoint, root, path: own.get("") ?? "/" }) };
    } else if (type === "cgroup") {
      for (const controller of superOptions) {
        const path = own.get(controller);
        if (path !== undefined) v1.set(controller, folderIn({ mountPoint, root, path }));
      }
    }
  }
  return v2 === undefined ? { v1 } : { v1, v2 };
}

interface MountLine {
  readonly type: string;
  readonly mountPoint: string;
  readonly root: string;
  readonly superOptions: readonly string[];
}

function parseMounts(mountInfo: string): MountLine[] {
  return mountInfo.split("\n").map((line) => {
    const [left = "", right = ""] = line.split(" - ");
    const [, , , root = "/", mountPoint = ""] = left.split(" ");
    const [type = "", , superOptions = ""] = right.split(" ");
    return { type, mountPoint, root, superOptions: superOptions.split(",") };
  });
}

/** A container sees its own group as the root of the mount, and still may read its full path in `/proc/self/cgroup`. */
function folderIn(probe: { mountPoint: string; root: string; path: string }): string {
  const { mountPoint, root, path } = probe;
  if (root === "/") return join(mountPoint, path);
  if (path === root || path.startsWith(`${root}/`)) return join(mountPoint, path.slice(root.length));
  return mountPoint;
}

function parseOwnGroups(text: string): Map<string, string> {
  const own = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, controllers, ...rest] = line.split(":");
    if (controllers === undefined || rest.length === 0) continue;
    for (const controller of controllers.split(",")) own.set(controller, rest.join(":"));
  }
  return own;
}
