import { existsSync, readFileSync } from "node:fs";
import { type DoctorCheck, type DoctorLook, failed, ok, warning } from "./check.ts";

const NAMED = { category: "isolation", name: "user namespaces" } as const;

const APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
const CLONE = "/proc/sys/kernel/unprivileged_userns_clone";
const MOST = "/proc/sys/user/max_user_namespaces";

export type ReadSetting = (path: string) => string | undefined;

/** What came of bubblewrap when it was tried. */
export type Bubblewrap = "starts" | "fails" | "untried";

/** Where no sandbox can be tried. */
export function userNamespacesLook(): DoctorLook {
  return { look: async () => [userNamespaces("untried")] };
}

/**
 * Without them bubblewrap cannot isolate anything. Distributions take them away in three ways, from root too: a server of
 * root's starts bubblewrap as another user. What counts is whether it starts: an exception made for it shows in no setting.
 */
export function userNamespaces(bubblewrap: Bubblewrap, read: ReadSetting = readSetting): DoctorCheck {
  const restriction = restrictionIn(read);
  if (restriction === undefined) return ok(NAMED, "programs may use user namespaces");
  const { problem, fix } = restriction;
  if (bubblewrap === "starts") return ok(NAMED, `${problem}, and bubblewrap may use them all the same`);
  return bubblewrap === "fails" ? failed(NAMED, problem, fix) : warning(NAMED, problem, fix);
}

function restrictionIn(read: ReadSetting): { readonly problem: string; readonly fix: string } | undefined {
  if (read(MOST) === "0")
    return { problem: "the kernel allows no user namespaces", fix: "run: sysctl user.max_user_namespaces=15000" };
  if (read(APPARMOR) === "1")
    return {
      problem: "AppArmor keeps programs from using user namespaces (Ubuntu 23.10 and newer)",
      fix: "add an AppArmor profile for /usr/bin/bwrap with `userns,`, or run: sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    };
  if (read(CLONE) === "0")
    return { problem: "only root may use user namespaces", fix: "run: sysctl kernel.unprivileged_userns_clone=1" };
  return undefined;
}

function readSetting(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
}
