import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { packTar } from "../../../../../src/sandbox/runtimes/docker/tar-archive.ts";

test("the machine's own tar reads the archive: names, modes, owners beyond seven octal digits, contents", () => {
  const archive = packTar([
    { name: "folder/", mode: 0o755, uid: 1_460_296_359 },
    { name: "folder/file", mode: 0o644, content: Buffer.from("x".repeat(513)) },
    { name: "empty", mode: 0o444, content: Buffer.alloc(0) },
  ]);
  const options = { input: archive, encoding: "utf8" } as const;
  const listed = execFileSync("tar", ["--numeric-owner", "-tvf", "-"], options).trim().split("\n");
  expect(listed.map((line) => line.split(/\s+/).filter((_part, at) => ![3, 4].includes(at)))).toEqual([
    ["drwxr-xr-x", "1460296359/1460296359", "0", "folder/"],
    ["-rw-r--r--", "0/0", "513", "folder/file"],
    ["-r--r--r--", "0/0", "0", "empty"],
  ]);
  expect(execFileSync("tar", ["-xOf", "-", "folder/file"], options)).toBe("x".repeat(513));
});

test("a name that does not fit is refused, not cut", () => {
  expect(() => packTar([{ name: "n".repeat(101), mode: 0o644 }])).toThrow("too long");
});
