import type { GuestParams } from "../../contract/guest.ts";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startGuest, type Guest } from "./guest-process.ts";

const read = (guest: Guest, path: string, options: Partial<GuestParams["file.read"]> = {}) =>
  guest.call("file.read", { path, encoding: "auto", maxBytes: 1_000_000, ...options });
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

const TEXT = "aé€😀\uFEFFzüß日本語 end";

test.each([1, 2, 3, 4, 5, 7])("byte ranges of %i, one after the other, lose no character", async (length) => {
  const guest = await startGuest();
  writeFileSync(join(guest.workspace, "t.txt"), TEXT);
  const size = Buffer.byteLength(TEXT);
  let counted = "";
  for (let offset = 0; offset < size; offset += length) {
    counted += (await read(guest, "t.txt", { offset, length })).content;
  }
  expect(counted).toBe(TEXT);
  let followed = "";
  for (let offset: number | undefined = 0; offset !== undefined;) {
    const part: Awaited<ReturnType<typeof read>> = await read(guest, "t.txt", { offset, length });
    expect(part.offset).toBe(offset);
    followed += part.content;
    offset = part.nextOffset;
  }
  expect(followed).toBe(TEXT);
});

test("a range that starts within a character says where it really starts", async () => {
  const guest = await startGuest();
  writeFileSync(join(guest.workspace, "t.txt"), "€€€");
  expect(await read(guest, "t.txt", { offset: 1, length: 3 })).toMatchObject({
    content: "€",
    offset: 3,
    nextOffset: 6,
    encoding: "utf-8",
  });
  expect(await read(guest, "t.txt", { offset: 1, length: 3, encoding: "base64" })).toMatchObject({
    content: Buffer.from("€€€").subarray(1, 4).toString("base64"),
    offset: 1,
    nextOffset: 4,
  });
});

test("a whole file has no offsets", async () => {
  const guest = await startGuest();
  writeFileSync(join(guest.workspace, "t.txt"), "€");
  const whole = await read(guest, "t.txt");
  expect(whole.offset).toBeUndefined();
  expect(whole.nextOffset).toBeUndefined();
});

test("hints name the arguments that callers have", async () => {
  const guest = await startGuest();
  writeFileSync(join(guest.workspace, "t.txt"), "a a");
  await expect(replace(guest, "t.txt", "", "x")).rejects.toThrow("old_text");
  await expect(replace(guest, "t.txt", "a", "a")).rejects.toThrow("old_text and new_text");
  await expect(replace(guest, "t.txt", "a", "b")).rejects.toMatchObject({
    data: { hint: expect.stringContaining("replace_all: true") },
  });
  await expect(search(guest, "(")).rejects.toMatchObject({ data: { hint: expect.stringContaining("regex: false") } });
});

test("matches that overlap are several", async () => {
  const guest = await startGuest();
  writeFileSync(join(guest.workspace, "t.txt"), "aaa");
  await expect(replace(guest, "t.txt", "aa", "b")).rejects.toMatchObject({ data: { kind: "several_matches" } });
  expect(await replace(guest, "t.txt", "aa", "b", true)).toMatchObject({ replacements: 1 });
});

test("links that lead in a circle are said to", async () => {
  const guest = await startGuest();
  symlinkSync("two", join(guest.workspace, "one"));
  symlinkSync("one", join(guest.workspace, "two"));
  for (const action of [read(guest, "one"), read(guest, "one/x")]) {
    await expect(action).rejects.toMatchObject({ message: expect.stringContaining("circle") });
  }
});

test("an end before the start is refused", async () => {
  const guest = await startGuest();
  writeFileSync(join(guest.workspace, "t.txt"), "1\n2\n3\n");
  await expect(read(guest, "t.txt", { startLine: 3, endLine: 2 })).rejects.toThrow(/end_line .* start_line/);
});

test("text that no file can hold is refused", async () => {
  const guest = await startGuest();
  const params = { path: "t.txt", encoding: "utf-8", mode: "overwrite" } as const;
  await expect(guest.call("file.write", { ...params, content: "ab\uD800c" })).rejects.toThrow(/content .*character 3/);
  await guest.call("file.write", { ...params, content: "ab😀" });
  await expect(replace(guest, "t.txt", "a", "\uDE00")).rejects.toThrow(/new_text .*character 1/);
  expect((await read(guest, "t.txt")).content).toBe("ab😀");
});

test("names that are not UTF-8 are listed", async () => {
  const guest = await startGuest();
  const folder = Buffer.from(`${guest.workspace}/`);
  writeFileSync(Buffer.concat([folder, Buffer.from([0x61, 0xff, 0x62])]), "12345");
  mkdirSync(Buffer.concat([folder, Buffer.from([0xe9])]));
  writeFileSync(join(guest.workspace, "real\uFFFD.txt"), "1");
  const params = { path: ".", recursive: true, includeHidden: false, maxEntries: 10 };
  const { entries } = await guest.call("file.list", params);
  expect(entries.map(({ path, type, sizeBytes }) => [path, type, type === "file" ? sizeBytes : 0])).toEqual([
    [String.raw`\xe9`, "directory", 0],
    [String.raw`a\xffb`, "file", 5],
    ["real\uFFFD.txt", "file", 1],
  ]);
});

test("hidden files are searched when asked for, and files are counted the same with ripgrep and without", async () => {
  const withRipgrep = await startGuest();
  const without = await startGuest();
  for (const { workspace } of [withRipgrep, without]) {
    mkdirSync(join(workspace, "sub"));
    writeFileSync(join(workspace, "z.txt"), "needle\n");
    writeFileSync(join(workspace, "sub", "b.txt"), "other\n");
    writeFileSync(join(workspace, "empty.txt"), "");
    writeFileSync(join(workspace, "binary.bin"), Buffer.from([1, 0, 2]));
    writeFileSync(join(workspace, ".env"), "needle\n");
    mkdirSync(join(workspace, ".config"));
    writeFileSync(join(workspace, ".config", "c.txt"), "needle\n");
  }
  // A back reference is nothing for ripgrep.
  for (const [guest, pattern] of [
    [withRipgrep, "needle"],
    [without, String.raw`n(e)\1dle`],
  ] as const) {
    const visible = await search(guest, pattern);
    expect(visible).toMatchObject({ filesSearched: 4, isTruncated: false });
    expect(visible.matches.map(({ path }) => path)).toEqual(["z.txt"]);
    const all = await search(guest, pattern, { includeHidden: true });
    expect(all.filesSearched).toBe(6);
    expect(all.matches.map(({ path }) => path).toSorted()).toEqual([".config/c.txt", ".env", "z.txt"]);
    const named = await search(guest, pattern, { glob: ".env" });
    expect(named.matches.map(({ path }) => path)).toEqual([".env"]);
    const cut = await search(guest, pattern, { includeHidden: true, maxMatches: 1 });
    expect(cut).toMatchObject({ isTruncated: true });
    expect(cut.filesSearched).toBeUndefined();
  }
});

test.each([
  ["latin1", Buffer.from("née\nü", "latin1"), "née\nü"],
  ["utf-16le", Buffer.from("\uFEFFnée\nü", "utf16le"), "née\nü"],
] as const)("reads %s when told to", async (encoding, bytes, text) => {
  const guest = await startGuest();
  writeFileSync(join(guest.workspace, "t.txt"), bytes);
  expect(await read(guest, "t.txt", { encoding })).toMatchObject({ content: text, encoding });
});
