import { expect, test } from "vitest";
import { serverMode, type Surroundings } from "../../../src/cli/doctor/machine-probes.ts";

const HOST: Surroundings = { platform: "linux", uid: 0, exists: () => false, read: () => "" };

test.each<[string, Partial<Surroundings>]>([
  ["on Linux as root", {}],
  ["on Linux as user 1000", { uid: 1000 }],
  ["in a container on Linux as root", { exists: (path) => path === "/.dockerenv" }],
  ["in a container on Linux as user 1000", { uid: 1000, exists: (path) => path === "/run/.containerenv" }],
  ["in a container on Linux as root", { read: (path) => (path === "/proc/1/cgroup" ? "0::/kubepods/pod1" : "") }],
  ["in a container on Linux as root", { read: (path) => (path === "/proc/1/environ" ? "A=1\0container=podman" : "") }],
  ["in WSL on Linux as user 1000", { uid: 1000, read: (path) => (path === "/proc/version" ? "Microsoft" : "") }],
  ["on macOS as user 501", { platform: "darwin", uid: 501 }],
  ["on Windows", { platform: "win32", uid: undefined }],
])("the doctor names the mode: %s", (message, found) => {
  expect(serverMode({ ...HOST, ...found })).toMatchObject({ name: "mode", status: "ok", message });
});
