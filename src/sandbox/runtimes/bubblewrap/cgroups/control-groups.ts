import { join } from "node:path";
import { type ControlGroupTree, openVersion1Tree, openVersion2Tree } from "./limited-groups.ts";
import { access, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { runTool } from "../../run-tool.ts";

const MOVE_TIMEOUT_MS = 15_000;
const MOVE_POLL_MS = 10;

/** Every folder that `openControlGroups` may make. It is recorded before, so that another server can remove it after a crash. */
export async function plannedGroups(serverName: string): Promise<string[]> {
  const hierarchies = await readHierarchies().catch(() => undefined);
  if (hierarchies === undefined) return [];
  const { v1, v2 } = hierarchies;
  const parents = [...v1.values(), ...(v2 === undefined ? [] : [v2.mountPoint, v2.ownFolder])];
  return [...new Set(parents)].map((parent) => join(parent, serverName));
}

/** The cgroup folder in which this server can limit instances; `undefined` when it may not make groups. */
export async function openControlGroups(serverName: string): Promise<ControlGroupTree | undefined> {
  const hierarchies = await readHierarchies().catch(() => undefined);
  if (hierarchies === undefined) return undefined;
  if (process.getuid?.() !== 0 && hierarchies.v2 !== undefined && (await adoptScope(serverName))) {
    return await openVersion2Tree(await readHierarchies(), serverName);
  }
  return (await openVersion2Tree(hierarchies, serverName)) ?? (await openVersion1Tree(hierarchies, serverName));
}

/** Asks the user's systemd for a delegated group for this process: a login session's group is not delegated to the user. */
async function adoptScope(serverName: string): Promise<boolean> {
  const uid = process.getuid?.();
  const bus = `/run/user/${uid}/bus`;
  try {
    await access(bus);
  } catch {
    return false;
  }
  const scope = `${serverName}.scope`;
  const call = ["--user", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1"];
  const method = ["org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))"];
  const properties = ["2", "PIDs", "au", "1", String(process.pid), "Delegate", "b", "true"];
  const started = await runTool({
    command: "busctl",
    args: [...call, ...method, scope, "fail", ...properties, "0"],
    env: { XDG_RUNTIME_DIR: `/run/user/${uid}`, DBUS_SESSION_BUS_ADDRESS: `unix:path=${bus}` },
    timeoutMs: MOVE_TIMEOUT_MS,
  });
  return started.code === 0 && (await hasMovedTo(scope));
}

/** systemd answers when the move is queued, not when it is done. */
async function hasMovedTo(scope: string): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < MOVE_TIMEOUT_MS; waitedMs += MOVE_POLL_MS) {
    if ((await readFile("/proc/self/cgroup", "utf8")).includes(`/${scope}`)) return true;
    await delay(MOVE_POLL_MS);
  }
  return false;
}

/** The cgroup folders of this process in each mounted hierarchy. */
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

/** In a container the group is the root of the mount, while `/proc/self/cgroup` may show its full path. */
function folderIn({ mountPoint, root, path }: { mountPoint: string; root: string; path: string }): string {
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
