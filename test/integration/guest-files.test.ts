import type { GuestParams } from "../../contract/guest.ts";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { memoryDisk } from "../services/private-folder.ts";
import { startGuest, type Guest } from "./guest-process.ts";

const read = (guest: Guest, path: string, options: Partial<GuestParams["file.read"]> = {}) =>
  guest.call("file.read", { path, encoding: "auto", maxBytes: 1_000_000, ...options });
const write = (guest: Guest, path: string, content: string, options: Partial<GuestParams["file.write"]> = {}) =>
  guest.call("file.write", { path, content, encoding: "utf-8", mode: "overwrite", ...options });
const list = (guest: Guest, options: Partial<GuestParams["file.list"]> = {}) =>
  guest.call("file.list", { path: ".", recursive: false, includeHidden: false, maxEntries: 1_000, ...options });
const search = (guest: Guest, pattern: string, options: Partial<GuestParams["file.search"]> = {}) =>
  guest.call("file.search", {
    pattern,
    isRegex: true,
    path: ".",
    ignoreCase: false,
    includeHidden: false,
    contextLines: 0,
    maxMatches: 100,
    ...options,
  });
const replace = (guest: Guest, path: string, oldText: string, newText: string, replaceAll = false) =>
  guest.call("file.replace", { path, oldText, newText, replaceAll });
const failure = (kind: string) => ({
  code: -32050,
  data: { kind, message: expect.any(String), hint: expect.any(String) },
});

/** With ripgrep only where the machine has it: its answers must be the same. */
function searchPaths(): [string, string][] {
  const path = process.env["PATH"] ?? "";
  const ripgrep = path.split(":").find((folder) => existsSync(join(folder, "rg")));
  const without = path.split(":").filter((folder) => folder !== ripgrep || folder === "/usr/bin");
  const own: [string, string] = ["our own search", ripgrep === "/usr/bin" ? "/nowhere" : without.join(":")];
  return ripgrep === undefined ? [own] : [own, ["ripgrep", path]];
}

test("what is written is read, by relative and absolute path", async () => {
  const guest = await startGuest();
  expect(await write(guest, "new/folder/a.txt", "hé\n")).toEqual({
    path: "new/folder/a.txt",
    bytesWritten: 4,
    sizeBytes: 4,
    created: true,
  });
  expect(await read(guest, join(guest.workspace, "new/../new/folder/a.txt"))).toMatchObject({
    encoding: "utf-8",
    content: "hé\n",
    sizeBytes: 4,
    totalLines: 1,
    isTruncated: false,
  });
  expect(await write(guest, "new/folder/a.txt", "b", { mode: "append" })).toMatchObject({
    sizeBytes: 5,
    created: false,
  });
  await expect(write(guest, "new/folder/a.txt", "c", { mode: "create" })).rejects.toMatchObject(
    failure("already_exists"),
  );
  expect((await read(guest, "new/folder/a.txt")).content).toBe("hé\nb");
});

test("the whole of an output that was cut can be read in pages", async () => {
  const guest = await startGuest();
  const shell = { callId: "s", command: "seq 1 5000", timeoutMs: 9_000, maxOutputChars: 100, background: false };
  const { stdout } = await guest.call("shell.exec", shell);
  const page = await read(guest, stdout.file ?? "", { startLine: 4_999 });
  expect(page).toMatchObject({ content: "4999\n5000\n", totalLines: 5_000 });
  await expect(read(guest, "/tmp/.owlclaw-output/../x.txt")).rejects.toMatchObject(failure("outside_workspace"));
  await expect(write(guest, stdout.file ?? "", "x")).rejects.toMatchObject(failure("outside_workspace"));
});

test("bytes travel as base64", async () => {
  const guest = await startGuest();
  const bytes = Buffer.from([0, 255, 1, 254]);
  await write(guest, "b.bin", bytes.toString("base64"), { encoding: "base64" });
  expect(readFileSync(join(guest.workspace, "b.bin"))).toEqual(bytes);
  expect(await read(guest, "b.bin")).toMatchObject({ encoding: "base64", content: "AP8B/g==" });
  expect(await read(guest, "b.bin", { encoding: "base64", offset: 1, length: 2 })).toMatchObject({ content: "/wE=" });
  await expect(read(guest, "b.bin", { encoding: "utf-8" })).rejects.toMatchObject(failure("not_text"));
  await expect(write(guest, "c.bin", "no base64!", { encoding: "base64" })).rejects.toMatchObject({ code: -32602 });
});

test("an overwrite keeps the mode, goes through links inside, and leaves nothing beside it", async () => {
  const guest = await startGuest();
  const path = join(guest.workspace, "run.sh");
  writeFileSync(path, "old");
  chmodSync(path, 0o751);
  symlinkSync("run.sh", join(guest.workspace, "link"));
  await write(guest, "link", "new");
  expect(readFileSync(path, "utf8")).toBe("new");
  expect(statSync(path).mode & 0o777).toBe(0o751);
  expect(readlinkSync(join(guest.workspace, "link"))).toBe("run.sh");
  await write(guest, "run.sh", "newer", { permissions: 0o600 });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  await write(guest, "made.txt", "x", { mode: "create", permissions: 0o640 });
  expect(statSync(join(guest.workspace, "made.txt")).mode & 0o777).toBe(0o640);
  expect(readdirSync(guest.workspace).sort()).toEqual(["link", "made.txt", "run.sh"]);
});

test.each([
  ["..", "../outside"],
  ["an absolute path", "/etc/passwd"],
  ["a prefix of the same name", "PREFIX"],
  ["a link to a file", "file-link"],
  ["a link to a folder", "folder-link/passwd"],
  ["a chain of links", "chain"],
  ["a link that dangles", "dangling"],
  ["a link to itself", "loop"],
])("refuses to read or write outside: %s", async (_name, given) => {
  const guest = await startGuest();
  const at = (name: string) => join(guest.workspace, name);
  const outside = `${guest.workspace}-outside`;
  symlinkSync("/etc/passwd", at("file-link"));
  symlinkSync("/etc", at("folder-link"));
  symlinkSync("chain-2", at("chain"));
  symlinkSync("folder-link/hostname", at("chain-2"));
  symlinkSync(outside, at("dangling"));
  symlinkSync("loop", at("loop"));
  const path = given === "PREFIX" ? outside : given;
  await expect(read(guest, path)).rejects.toMatchObject(failure("outside_workspace"));
  await expect(write(guest, path, "x")).rejects.toMatchObject(failure("outside_workspace"));
  await expect(write(guest, path, "x", { mode: "append" })).rejects.toMatchObject(failure("outside_workspace"));
  await expect(replace(guest, path, "a", "b")).rejects.toMatchObject(failure("outside_workspace"));
  await expect(search(guest, "root", { path })).rejects.toMatchObject(failure("outside_workspace"));
  expect(existsSync(outside)).toBe(false);
});

test("a file whose time no date can hold is listed all the same", async () => {
  const guest = await startGuest({ place: memoryDisk() });
  writeFileSync(join(guest.workspace, "late"), "x");
  utimesSync(join(guest.workspace, "late"), 9e12, 9e12);
  expect((await list(guest)).entries).toMatchObject([{ path: "late", modifiedAt: "+275760-09-13T00:00:00.000Z" }]);
});

/** Swaps a folder of the workspace with a link to `outside`, as fast as the system can. */
const SWAPPER = `
import ctypes, sys
libc = ctypes.CDLL(None)
print("swapping", flush=True)
while True: libc.renameat2(-100, b"way", -100, b"other", 2)`;

test("a folder that becomes a link while a file in it is opened never leads outside", async () => {
  const guest = await startGuest();
  const outside = `${guest.workspace}-outside`;
  for (const folder of [outside, join(guest.workspace, "way")]) {
    mkdirSync(folder);
    writeFileSync(join(folder, "target"), folder === outside ? "secret" : "fine");
  }
  symlinkSync(outside, join(guest.workspace, "other"));
  const command = `exec python3 -c '${SWAPPER}'`;
  const shell = { callId: "s", command, timeoutMs: 0, maxOutputChars: 10, background: true };
  const { processId = "" } = await guest.call("shell.exec", shell);
  await guest.call("shell.output", { processId, cursor: 0, maxChars: 10, waitMs: 5_000 });
  const attempts = Array.from({ length: 6_000 }, async () => {
    await write(guest, "way/made", "fine").catch(() => {});
    return await read(guest, "way/target").then(
      ({ content }) => content,
      () => "refused",
    );
  });
  const seen = new Set(await Promise.all(attempts));
  const outsideNow = readdirSync(outside);
  rmSync(outside, { recursive: true });
  expect([...seen].sort()).toEqual(["fine", "refused"]);
  expect(outsideNow).toEqual(["target"]);
});

test("names that are odd are names", async () => {
  const guest = await startGuest();
  for (const name of ["-rf", "a b", "q\"uo'te", "new\nline", "%2e%2e", "ünï", "..."]) {
    await write(guest, name, name);
    expect((await read(guest, name)).content).toBe(name);
  }
  await expect(read(guest, "a\0b")).rejects.toMatchObject(failure("not_found"));
  await expect(write(guest, "x".repeat(300), "")).rejects.toMatchObject(failure("not_found"));
});

test("folders, pipes and missing files fail with a hint", async () => {
  const guest = await startGuest();
  mkdirSync(join(guest.workspace, "folder"));
  const command = "mkfifo pipe";
  await guest.call("shell.exec", { callId: "s", command, timeoutMs: 9_000, maxOutputChars: 10, background: false });
  writeFileSync(join(guest.workspace, "file"), "");
  await expect(read(guest, "folder")).rejects.toMatchObject(failure("not_a_file"));
  await expect(read(guest, "pipe")).rejects.toMatchObject(failure("not_a_file"));
  await expect(write(guest, "pipe", "x", { mode: "append" })).rejects.toMatchObject(failure("not_a_file"));
  await expect(write(guest, "folder", "x")).rejects.toMatchObject(failure("not_a_file"));
  await expect(write(guest, ".", "x")).rejects.toMatchObject(failure("not_a_file"));
  await expect(read(guest, "nothing")).rejects.toMatchObject(failure("not_found"));
  await expect(write(guest, "file/below", "x")).rejects.toMatchObject(failure("not_a_directory"));
  await expect(list(guest, { path: "file" })).rejects.toMatchObject(failure("not_a_directory"));
});

test("lines of a file of 100 MB come without loading it", async () => {
  const guest = await startGuest();
  const path = join(guest.workspace, "big.txt");
  const block = Array.from({ length: 10_000 }, (_, index) => `line ${String(index).padStart(95, "0")}\n`).join("");
  for (let round = 0; round < 100; round += 1) appendFileSync(path, block);
  const result = await read(guest, "big.txt", { startLine: 900_001, endLine: 900_002 });
  expect(result.content).toBe(block.split("\n").slice(0, 2).join("\n") + "\n");
  expect(result).toMatchObject({ startLine: 900_001, endLine: 900_002, totalLines: 1_000_000, isTruncated: false });
  const head = await read(guest, "big.txt", { maxBytes: 1_000 });
  expect(head).toMatchObject({ isTruncated: true, sizeBytes: 101_000_000 });
  expect(head.content).toHaveLength(1_000);
  const memory = /VmHWM:\s+(\d+)/u.exec(readFileSync(`/proc/${guest.process.pid}/status`, "utf8"));
  expect(Number(memory?.[1])).toBeLessThan(200_000);
});

test("a byte-order mark is not content, and an edit keeps it", async () => {
  const guest = await startGuest();
  const path = join(guest.workspace, "bom.txt");
  writeFileSync(path, "\uFEFFone\r\ntwo\r\n");
  expect((await read(guest, "bom.txt")).content).toBe("one\r\ntwo\r\n");
  expect(await replace(guest, "bom.txt", "one\ntwo", "1\n2")).toMatchObject({ replacements: 1 });
  expect(readFileSync(path, "utf8")).toBe("\uFEFF1\r\n2\r\n");
});

test("a range cut within a character stays text", async () => {
  const guest = await startGuest();
  writeFileSync(join(guest.workspace, "u.txt"), "€€€");
  expect(await read(guest, "u.txt", { maxBytes: 4 })).toMatchObject({
    encoding: "utf-8",
    content: "€",
    isTruncated: true,
  });
  expect(await read(guest, "u.txt", { offset: 1, length: 5 })).toMatchObject({ encoding: "utf-8", content: "€" });
});

test("replaces what is there once, and says what is wrong otherwise", async () => {
  const guest = await startGuest();
  const path = join(guest.workspace, "code.js");
  writeFileSync(path, "a = 1\nb = $&\na = 1\n");
  chmodSync(path, 0o755);
  expect(await replace(guest, "code.js", "b = $&", "b = $1 $&")).toEqual({
    path: "code.js",
    replacements: 1,
    sizeBytes: 22,
  });
  expect(readFileSync(path, "utf8")).toBe("a = 1\nb = $1 $&\na = 1\n");
  expect(statSync(path).mode & 0o777).toBe(0o755);
  await expect(replace(guest, "code.js", "a = 1", "c")).rejects.toMatchObject({
    data: { kind: "several_matches", message: /2 times \(lines 1, 3\)/u, hint: /replace_all/u },
  });
  await expect(replace(guest, "code.js", "a = 1\nwrong", "c")).rejects.toMatchObject({
    data: { kind: "no_match", hint: /line 1/u },
  });
  expect(await replace(guest, "code.js", "a = 1", "c", true)).toMatchObject({ replacements: 2 });
  await expect(replace(guest, "code.js", "", "c")).rejects.toMatchObject({ code: -32602 });
});

test("lists by name, with types, globs, hidden files and limits", async () => {
  const guest = await startGuest();
  for (const path of ["src/a.ts", "src/deep/b.ts", "src/deep/c.js", ".hidden/d.ts", "readme.md", "node.{x}"]) {
    await write(guest, path, path);
  }
  symlinkSync("/etc", join(guest.workspace, "link"));
  const paths = async (options: Partial<GuestParams["file.list"]>) =>
    (await list(guest, options)).entries.map(({ path }) => path);
  expect(await paths({})).toEqual(["link", "node.{x}", "readme.md", "src"]);
  expect((await list(guest)).entries[0]).toMatchObject({ type: "symlink", linkTarget: "/etc" });
  expect(await paths({ recursive: true, glob: "*.ts" })).toEqual(["src/a.ts", "src/deep/b.ts"]);
  expect(await paths({ glob: "src/**/*.{ts,js}" })).toEqual(["src/a.ts", "src/deep/b.ts", "src/deep/c.js"]);
  expect(await paths({ glob: "**/[bc].?s", includeHidden: true })).toEqual(["src/deep/b.ts", "src/deep/c.js"]);
  expect(await paths({ includeHidden: true, recursive: true, glob: "d.ts" })).toEqual([".hidden/d.ts"]);
  expect(await paths({ path: "src", recursive: true, glob: "deep/*" })).toEqual(["src/deep/b.ts", "src/deep/c.js"]);
  expect(await list(guest, { maxEntries: 2 })).toMatchObject({ isTruncated: true, entries: { length: 2 } });
  await expect(list(guest, { path: "link" })).rejects.toMatchObject(failure("outside_workspace"));
});

test.for(searchPaths())(
  "searches text with context, skips binary and hidden files, follows no links: %s",
  async ([, PATH]) => {
    const guest = await startGuest({ env: { PATH } });
    await write(guest, "a.txt", "one\r\ntwo Needle\r\nthree\r\n");
    await write(guest, "sub/b.txt", "needle\nneedle");
    await write(guest, ".git/c.txt", "needle");
    writeFileSync(join(guest.workspace, "d.bin"), Buffer.from("needle\0"));
    symlinkSync("/etc", join(guest.workspace, "etc"));
    expect(await search(guest, "needle", { ignoreCase: true, contextLines: 1 })).toEqual({
      matches: [
        { path: "a.txt", line: 2, text: "two Needle", before: ["one"], after: ["three"] },
        { path: "sub/b.txt", line: 1, text: "needle", before: [], after: ["needle"] },
        { path: "sub/b.txt", line: 2, text: "needle", before: ["needle"], after: [] },
      ],
      filesSearched: expect.any(Number),
      isTruncated: false,
    });
    expect((await search(guest, "n.edle$", { path: "sub/b.txt", maxMatches: 2 })).isTruncated).toBe(false);
    expect(await search(guest, "^needle", { maxMatches: 1 })).toMatchObject({
      isTruncated: true,
      matches: { length: 1 },
    });
    expect((await search(guest, "n.*e", { isRegex: false })).matches).toEqual([]);
    expect((await search(guest, "needle", { glob: "*.md" })).matches).toEqual([]);
    await expect(search(guest, "(")).rejects.toMatchObject(failure("bad_pattern"));
  },
);

test("a pattern that takes forever can be cancelled, and other calls go on", async () => {
  const guest = await startGuest();
  await write(guest, "evil.txt", `${"a".repeat(50)}!`);
  const source = new AbortController();
  const flags = { isRegex: true, ignoreCase: false, includeHidden: false };
  // One file by name is searched by our own engine, where such a pattern takes forever; ripgrep is done at once.
  const params = { pattern: "^(a+)+$", path: "evil.txt", ...flags, contextLines: 0, maxMatches: 1 };
  const answer = guest.call("file.search", params, source.signal);
  expect((await read(guest, "evil.txt")).totalLines).toBe(1);
  source.abort();
  await expect(answer).rejects.toThrow(/abort/u);
});

test("hard links and files of another name are no way out of a create", async () => {
  const guest = await startGuest();
  writeFileSync(join(guest.workspace, "one"), "1");
  linkSync(join(guest.workspace, "one"), join(guest.workspace, "two"));
  await write(guest, "one", "changed");
  expect(readFileSync(join(guest.workspace, "two"), "utf8")).toBe("1");
});
