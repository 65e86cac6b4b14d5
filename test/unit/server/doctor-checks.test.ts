import { describe, expect, test } from "vitest";
import { nodeVersion, userNamespaces } from "../../../src/server/doctor/machine-looks.ts";

describe("Node's version", () => {
  test.each([
    ["18.20.0", "failed"],
    ["20.18.3", "failed"],
    ["20.19.0", "ok"],
    ["24.1.0", "ok"],
  ])("%s is %s", (version, status) => {
    expect(nodeVersion(version).status).toBe(status);
  });
});

describe("user namespaces", () => {
  const settings = (found: Record<string, string>) => (path: string) => found[path.split("/").at(-1) ?? ""];

  test.each([
    ["Ubuntu's AppArmor restriction", { apparmor_restrict_unprivileged_userns: "1" }, /AppArmor/],
    ["Debian's old switch", { unprivileged_userns_clone: "0" }, /only root/],
    ["a kernel that allows none", { max_user_namespaces: "0" }, /allows no/],
  ])("%s is recognised, with what to do", (_what, found, message) => {
    expect(userNamespaces(settings(found), false)).toMatchObject({
      status: "failed",
      message: expect.stringMatching(message),
      fix: expect.stringContaining("sysctl"),
    });
  });

  test("root is not held up by what holds up others", () => {
    expect(userNamespaces(settings({ apparmor_restrict_unprivileged_userns: "1" }), true).status).toBe("ok");
  });

  test("a machine without restrictions is well", () => {
    expect(userNamespaces(() => undefined, false).status).toBe("ok");
  });
});
