import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkVolume, parseVolume, resolveVolume } from "../../../src/config/volume.ts";
import { temporaryFolder } from "./temporary-folder.ts";

test.each([
  ["/a:/data", { hostPath: "/a", guestPath: "/data", isReadOnly: false }],
  ["/a:/data:ro", { hostPath: "/a", guestPath: "/data", isReadOnly: true }],
  ["/a:b/c:/data:rw", { hostPath: "/a:b/c", guestPath: "/data", isReadOnly: false }],
  ["/project", { hostPath: "/project", guestPath: "/workspace", isReadOnly: false }],
])("%s", (text, volume) => {
  expect(parseVolume(text, "/workspace")).toEqual(volume);
});

test("a relative folder is resolved where it was written", () => {
  expect(resolveVolume("/etc/owl", "./data:/data:ro")).toBe("/etc/owl/data:/data:ro");
  expect(resolveVolume("/home/ada", ".")).toBe("/home/ada");
});

const IN_SYSTEM = [
  "/",
  "/usr",
  "/etc/x",
  "/proc",
  "/tmp/x",
  "/opt",
  "/opt/owlclaw/x",
  "/opt/owlclaw-node",
  "/opt/owlclaw-node/x",
  "/workspace/x",
  "/data/..",
  "/a b",
  "data",
];

test.each(IN_SYSTEM)("nothing is mounted at %s", (guestPath) => {
  const folder = temporaryFolder();
  const surroundings = { dataFolders: [join(folder, "data")], workspacePath: "/workspace" };
  const host = join(folder, "shared");
  mkdirSync(host);
  expect(() => checkVolume({ hostPath: host, guestPath, isReadOnly: false }, surroundings)).toThrow(
    /it cannot appear at/,
  );
});

test("the machine itself, the kernel's folders and the data folder are never shown, not through a link either", () => {
  const folder = temporaryFolder();
  const dataFolder = join(folder, "data");
  mkdirSync(join(dataFolder, "inner"), { recursive: true });
  const link = (target: string, name: string): string => {
    symlinkSync(target, join(folder, name));
    return join(folder, name);
  };
  const reason = (hostPath: string): string => {
    try {
      checkVolume(
        { hostPath, guestPath: "/data", isReadOnly: true },
        { dataFolders: [dataFolder], workspacePath: "/workspace" },
      );
      return "";
    } catch (error) {
      return String(error);
    }
  };
  expect(
    [
      link("/", "root"),
      "/proc/self",
      link("/sys", "sys"),
      dataFolder,
      folder,
      link(join(dataFolder, "inner"), "in"),
      join(folder, "none"),
    ].map(reason),
  ).toEqual([
    "Error: it would show the whole machine",
    "Error: it belongs to the kernel",
    "Error: it belongs to the kernel",
    "Error: it would show the server's own data folder",
    "Error: it would show the server's own data folder",
    "Error: it would show the server's own data folder",
    `Error: there is no folder ${join(folder, "none")}`,
  ]);
});
