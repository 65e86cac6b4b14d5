import { describe, expect, it } from "vitest";
import { parseHierarchies } from "../../../../../src/sandbox/runtimes/bubblewrap/cgroups/control-groups.ts";

describe("the process's place in the cgroup tree", () => {
  it("is found in each hierarchy of version 1, joined controllers included", () => {
    const mounts = [
      "30 25 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
      "31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct",
    ].join("\n");
    const { v1, v2 } = parseHierarchies(mounts, "4:memory:/user/a\n2:cpu,cpuacct:/b\n1:name=systemd:/c\n");
    expect(Object.fromEntries(v1)).toEqual({
      memory: "/sys/fs/cgroup/memory/user/a",
      cpu: "/sys/fs/cgroup/cpu,cpuacct/b",
      cpuacct: "/sys/fs/cgroup/cpu,cpuacct/b",
    });
    expect(v2).toBeUndefined();
  });

  it("is found in version 2", () => {
    const mounts = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
    const own = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/owlclaw-1.scope\n";
    expect(parseHierarchies(mounts, own).v2).toEqual({
      mountPoint: "/sys/fs/cgroup",
      ownFolder: "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/owlclaw-1.scope",
    });
  });

  it("is the mount's root in a container that sees its own group there", () => {
    const mounts = "30 25 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory";
    expect(parseHierarchies(mounts, "4:memory:/docker/abc\n").v1.get("memory")).toBe("/sys/fs/cgroup/memory");
    expect(parseHierarchies(mounts, "4:memory:/docker/abc/x\n").v1.get("memory")).toBe("/sys/fs/cgroup/memory/x");
    expect(parseHierarchies(mounts, "4:memory:/../other\n").v1.get("memory")).toBe("/sys/fs/cgroup/memory");
  });
});
