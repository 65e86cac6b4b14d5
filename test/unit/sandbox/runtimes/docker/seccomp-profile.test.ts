import { describe, expect, test } from "vitest";
import { seccompProfile } from "../../../../../src/sandbox/runtimes/docker/seccomp-profile.ts";
import { ABSENT, REFUSED, UNREADABLE } from "../../../../../src/sandbox/runtimes/seccomp/filter.ts";

interface Profile {
  readonly defaultAction: string;
  readonly architectures: readonly string[];
  readonly syscalls: readonly { names: string[]; action: string; errnoRet?: number; args?: unknown[] }[];
}

describe.each(["x64", "arm64"] as const)("the profile for %s", (architecture) => {
  const profile = JSON.parse(seccompProfile(architecture)) as Profile;
  const allowed = profile.syscalls.filter(({ action }) => action === "SCMP_ACT_ALLOW");
  const free = new Set(allowed.filter(({ args }) => args === undefined).flatMap(({ names }) => names));

  test("refuses what it does not name", () => {
    expect(profile.defaultAction).toBe("SCMP_ACT_ERRNO");
    expect(profile.architectures).toHaveLength(1);
  });

  test("allows nothing that bubblewrap's filter refuses", () => {
    const named = new Set(allowed.flatMap(({ names }) => names));
    expect([...REFUSED, ...UNREADABLE, ...ABSENT].filter((name) => named.has(name))).toEqual([]);
  });

  test("looks at the arguments of the calls that bubblewrap's filter looks at", () => {
    const looked = [
      "clone",
      "unshare",
      "socket",
      "socketpair",
      "personality",
      "chmod",
      "fchmod",
      "fchmodat",
      "fchmodat2",
      "creat",
    ];
    const all = [...looked, "mknod", "mknodat", "open", "openat"];
    const seen = new Set(allowed.filter(({ args }) => args !== undefined).flatMap(({ names }) => names));
    expect(all.filter((name) => free.has(name) || !seen.has(name))).toEqual([]);
  });

  test("lets libraries fall back where arguments cannot be seen", () => {
    expect(profile.syscalls).toContainEqual({ names: [...UNREADABLE], action: "SCMP_ACT_ERRNO", errnoRet: 38 });
  });

  test("lets libraries fall back where asynchronous I/O is missing", () => {
    expect(profile.syscalls).toContainEqual({ names: [...ABSENT], action: "SCMP_ACT_ERRNO", errnoRet: 38 });
  });

  test("allows what programs live on", () => {
    expect(
      ["read", "write", "execve", "futex", "mmap", "epoll_wait", "ioctl"].filter((name) => !free.has(name)),
    ).toEqual([]);
  });
});
