import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startGuest } from "./guest-process.ts";

test("texts of many files come in one answer, and what is none says why", async () => {
  const guest = await startGuest();
  const at = (name: string): string => join(guest.workspace, name);
  mkdirSync(at("folder"));
  writeFileSync(at("folder/a.txt"), "hé\n");
  writeFileSync(at("empty"), "");
  writeFileSync(at("just.txt"), "x".repeat(100));
  writeFileSync(at("large.txt"), "x".repeat(101));
  writeFileSync(at("huge.txt"), "");
  truncateSync(at("huge.txt"), 1024 ** 4);
  writeFileSync(at("zero.bin"), Buffer.from([0x61, 0]));
  writeFileSync(at("latin.txt"), Buffer.from([0xe9]));
  const paths = ["folder/a.txt", "empty", "just.txt", "large.txt", "huge.txt", "zero.bin", "latin.txt", "folder", "no"];
  expect(await guest.call("file.texts", { paths, maxBytes: 100 })).toEqual({
    texts: [
      { text: "hé\n" },
      { text: "" },
      { text: "x".repeat(100) },
      { missing: "large" },
      { missing: "large" },
      { missing: "binary" },
      { missing: "binary" },
      { missing: "gone" },
      { missing: "gone" },
    ],
  });
});

test("texts of what is outside are not read, nor is a pipe waited for, whatever the name was when it was listed", async () => {
  const guest = await startGuest();
  const at = (name: string): string => join(guest.workspace, name);
  symlinkSync("/etc/passwd", at("file"));
  symlinkSync("/etc", at("folder"));
  symlinkSync("two", at("one"));
  symlinkSync("one", at("two"));
  symlinkSync("/dev/zero", at("device"));
  execFileSync("mkfifo", [at("pipe")]);
  writeFileSync(at("kept.txt"), "kept");
  const outside = ["file", "folder/passwd", "one", "device", "pipe", "../../etc/passwd", "/etc/passwd", "/dev/zero"];
  const paths = [...outside, "/proc/self/environ", "a\0b", "", "kept.txt"];
  const { texts } = await guest.call("file.texts", { paths, maxBytes: 65_536 });
  expect(texts).toEqual([...paths.slice(1).map(() => ({ missing: "gone" })), { text: "kept" }]);
});
