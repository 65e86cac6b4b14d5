import { execFileSync } from "node:child_process";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseSkillUri } from "../../../src/capability/skill-uri.ts";
import { readHeadInside, readInside } from "../../../src/skills/read-inside.ts";
import { SkillLibrary } from "../../../src/skills/skill-library.ts";
import { manifest, skillFolder, writeFiles } from "./skill-folder.ts";

async function open(files: Readonly<Record<string, string | Uint8Array>>): Promise<SkillLibrary> {
  const library = new SkillLibrary(await skillFolder(files));
  await library.refresh();
  return library;
}

function told(library: SkillLibrary): readonly string[] {
  return library.problems.map(({ path, severity, message }) => `${path}: ${severity}: ${message}`);
}

describe("the skills of a folder", () => {
  it("are found in categories, in nested ones and without any", async () => {
    const library = await open({
      "ecommerce/refund/SKILL.md": manifest("refund"),
      "ecommerce/returns/label/SKILL.md": manifest("label"),
      "pdf/SKILL.md": manifest("pdf"),
      "ecommerce/README.md": "about the category",
      ".git/config": "x",
    });
    expect([...library.skills.values()].map(({ uri, category }) => [uri, category])).toEqual([
      ["skill://ecommerce/refund", "ecommerce"],
      ["skill://ecommerce/returns/label", "ecommerce/returns"],
      ["skill://pdf", ""],
    ]);
    expect(library.problems).toEqual([]);
  });

  it("own what is below them; the longest path with a SKILL.md wins", async () => {
    const library = await open({
      "a/outer/SKILL.md": manifest("outer"),
      "a/outer/references/x.md": "outer's",
      "a/outer/inner/SKILL.md": manifest("inner"),
      "a/outer/inner/references/x.md": "inner's",
    });
    const found = (uri: string) => {
      const { skill, name } = library.find(parseSkillUri(uri)) ?? {};
      return [skill?.key, name];
    };
    expect(found("skill://a/outer/references/x.md")).toEqual(["a/outer", "references/x.md"]);
    expect(found("skill://a/outer/inner/references/x.md")).toEqual(["a/outer/inner", "references/x.md"]);
    expect(found("skill://a/outer/inner")).toEqual(["a/outer/inner", "SKILL.md"]);
    expect([...(library.skills.get("a/outer")?.files.keys() ?? [])]).toEqual(["SKILL.md", "references/x.md"]);
  });

  it("each fault is told with what to do, and the rest is served", async () => {
    const folder = await skillFolder({
      "good/one/SKILL.md": manifest("one"),
      "bad/yaml/SKILL.md": "---\nname: [\n---\n",
      "bad/plain/SKILL.md": "# no frontmatter",
      "bad/binary/SKILL.md": Uint8Array.of(0x2d, 0x2d, 0x2d, 0x0a, 0xff, 0xfe),
      "bad/huge/SKILL.md": `${manifest("huge")}${"x".repeat(1_100_000)}`,
      "bad/empty/notes.md": "x",
      "bad/cased/skill.md": manifest("cased"),
      "bad/twin/SKILL.md": manifest("twin"),
      "bad/twin-copy/SKILL.md": manifest("twin"),
      "SKILL.md": manifest("root"),
    });
    execFileSync("mkfifo", [join(folder, "bad/fifo.txt")]);
    await mkdir(join(folder, "bad/pipe"));
    execFileSync("mkfifo", [join(folder, "bad/pipe/SKILL.md")]);
    const library = new SkillLibrary(folder);
    await library.refresh();
    expect([...library.skills.keys()]).toEqual(["bad/twin", "good/one"]);
    expect(told(library)).toEqual([
      "SKILL.md: error: a SKILL.md in the folder of all skills has no name",
      "bad/binary/SKILL.md: error: it is not UTF-8 text",
      "bad/cased: error: the folder holds no SKILL.md",
      "bad/empty: error: the folder holds no SKILL.md",
      "bad/fifo.txt: error: it is not a regular file",
      "bad/huge/SKILL.md: error: it is larger than 1048576 bytes",
      "bad/pipe/SKILL.md: error: it is not a regular file",
      "bad/plain/SKILL.md: error: SKILL.md does not begin with frontmatter",
      `bad/twin-copy/SKILL.md: warning: its name "twin" is not the name of its folder, "twin-copy"`,
      `bad/twin-copy/SKILL.md: error: its name "twin" is that of the skill in bad/twin`,
      expect.stringMatching(/^bad\/yaml\/SKILL\.md: error: /),
    ]);
    for (const { fix } of library.problems) expect(fix).not.toBe("");
  });

  it("no link is followed, neither to a file nor to a folder, not even as SKILL.md", async () => {
    const outside = await skillFolder({ "secret.txt": "secret", "s/SKILL.md": manifest("s") });
    const folder = await skillFolder({ "a/one/SKILL.md": manifest("one"), "a/linked/x.md": "x" });
    await symlink(join(outside, "secret.txt"), join(folder, "a/one/secret.txt"));
    await symlink(outside, join(folder, "a/elsewhere"));
    await symlink(join(outside, "s/SKILL.md"), join(folder, "a/linked/SKILL.md"));
    const library = new SkillLibrary(folder);
    await library.refresh();
    expect([...library.skills.keys()]).toEqual(["a/one"]);
    expect([...(library.skills.get("a/one")?.files.keys() ?? [])]).toEqual(["SKILL.md"]);
    expect(told(library)).toEqual([
      "a/elsewhere: error: it is a link, and links are not followed",
      "a/linked/SKILL.md: error: it is a link, and links are not followed",
      "a/one/secret.txt: error: it is a link, and links are not followed",
    ]);
  });

  it("a folder that is swapped for a link after the look is not followed either", async () => {
    const outside = await skillFolder({ "x.md": "secret", "SKILL.md": manifest("one", "", "secret") });
    const folder = await skillFolder({ "a/one/SKILL.md": manifest("one"), "a/one/references/x.md": "x" });
    const library = new SkillLibrary(folder);
    await library.refresh();
    const file = library.skills.get("a/one")?.files.get("references/x.md");
    if (file === undefined) throw new Error("the file was not found");
    await rename(join(folder, "a/one/references"), join(folder, "moved"));
    await symlink(outside, join(folder, "a/one/references"));
    await expect(library.content(file)).rejects.toThrow(/link/);
    await expect(readInside(folder, "a/one/references/x.md", { maxBytes: 100 })).rejects.toThrow(/link/);
    expect(() => readHeadInside(folder, "a/one/references/x.md", { maxBytes: 100 })).toThrow(/link/);
  });

  it("a race of swapping and reading never gives what is outside", async () => {
    const outside = await skillFolder({ "x.md": "secret" });
    const folder = await skillFolder({ "real/x.md": "public", "s/x.md": "public" });
    const over = new AbortController();
    const swapping = (async () => {
      while (!over.signal.aborted) {
        await rm(join(folder, "s"), { recursive: true });
        await symlink(outside, join(folder, "s"));
        await rm(join(folder, "s"));
        await mkdir(join(folder, "s"));
        await writeFile(join(folder, "s/x.md"), "public");
      }
    })();
    const seen = new Set<string>();
    for (let i = 0; i < 300; i += 1) {
      try {
        seen.add((await readInside(folder, "s/x.md", { maxBytes: 100 })).bytes.toString());
      } catch {
        // Gone, or a link, just then.
      }
    }
    over.abort();
    await swapping;
    expect(seen).not.toContain("secret");
  });

  it("names in another normal form are served under the normal one, and a twin is told", async () => {
    const library = await open({
      "cafe\u0301/menu/SKILL.md": manifest("menu"),
      "cafe\u0301/menu/e\u0301.md": "x",
    });
    const [skill] = library.skills.values();
    expect(skill?.uri).toBe("skill://caf%C3%A9/menu");
    const file = skill?.files.get("\u00e9.md");
    if (file === undefined) throw new Error("the file was not found");
    expect((await library.content(file)).text).toBe("x");
    await writeFiles(library.dir, { "caf\u00e9/menu/SKILL.md": manifest("menu") });
    await library.refresh();
    expect(told(library)).toEqual(["caf\u00e9: error: the name occurs twice, in different Unicode spellings"]);
  });

  it("a skill with more files than hosts accept is served with the first of them", async () => {
    const files = Array.from({ length: 515 }, (_, index) => [`a/one/${String(index).padStart(4, "0")}.md`, "x"]);
    const library = await open({ "a/one/SKILL.md": manifest("one"), ...Object.fromEntries(files) });
    expect(library.skills.get("a/one")?.files.has("SKILL.md")).toBe(true);
    expect(library.skills.get("a/one")?.files.size).toBe(512);
    expect(told(library)).toEqual(["a/one: error: the skill has more than 512 files; the rest is not served"]);
  });
});

describe("a look at what changed", () => {
  const FILES = {
    "a/one/SKILL.md": manifest("one"),
    "a/one/references/x.md": "x",
    "a/two/SKILL.md": manifest("two"),
    "b/three/SKILL.md": manifest("three"),
  };

  async function change(library: SkillLibrary, name: string) {
    return library.refresh(new Set([join(library.root, name)]));
  }

  it("[004-R6.9] nothing changed: the same objects, and no news", async () => {
    const library = await open(FILES);
    const before = library.skills;
    expect(await library.refresh()).toEqual({ isChanged: false, updated: [] });
    expect(library.skills).toBe(before);
  });

  it("only the skill that changed is another object", async () => {
    const library = await open(FILES);
    const before = new Map(library.skills);
    await writeFiles(library.dir, { "a/one/SKILL.md": manifest("one", "", "New words") });
    expect(await change(library, "a/one/SKILL.md")).toEqual({
      isChanged: true,
      updated: ["skill://a/one", "skill://a/one/SKILL.md"],
    });
    const same = [...library.skills].filter(([key, skill]) => before.get(key) === skill).map(([key]) => key);
    expect(same).toEqual(["a/two", "b/three"]);
    expect(library.skills.get("a/one")?.metadata.description).toBe("New words");
  });

  it("a file of a skill, a new skill, a removed one and a moved one", async () => {
    const library = await open(FILES);
    await writeFiles(library.dir, { "a/one/references/x.md": "changed" });
    expect((await change(library, "a/one/references/x.md")).updated).toEqual(["skill://a/one/references/x.md"]);
    await writeFiles(library.dir, { "c/four/SKILL.md": manifest("four") });
    expect((await change(library, "c/four/SKILL.md")).updated).toEqual(["skill://c/four", "skill://c/four/SKILL.md"]);
    await rm(join(library.dir, "a/two"), { recursive: true });
    await change(library, "a/two");
    expect([...library.skills.keys()]).toEqual(["a/one", "b/three", "c/four"]);
    await rename(join(library.dir, "a/one"), join(library.dir, "b/one"));
    await library.refresh(new Set([join(library.root, "a/one"), join(library.root, "b/one")]));
    expect([...library.skills.keys()]).toEqual(["b/one", "b/three", "c/four"]);
  });

  const textOf = async (library: SkillLibrary, key: string): Promise<string | undefined> => {
    const file = library.skills.get(key)?.files.get("SKILL.md");
    return file === undefined ? undefined : (await library.content(file)).text;
  };

  it.each([
    ["bad YAML", "---\nname: ["],
    ["nothing", ""],
    ["no UTF-8", Buffer.from([0xff, 0xfe, 0xfd])],
    ["too much", Buffer.alloc(2 ** 20 + 1, "a")],
  ])("a save with %s is told, and the skill is served as it was", async (_what, broken) => {
    const library = await open(FILES);
    const before = library.skills;
    await writeFiles(library.dir, { "a/one/SKILL.md": broken });
    expect(await change(library, "a/one/SKILL.md")).toEqual({ isChanged: false, updated: [] });
    expect(library.skills).toBe(before);
    expect(await textOf(library, "a/one")).toBe(manifest("one"));
    expect(told(library)).toEqual([
      expect.stringMatching(/^a\/one\/SKILL\.md: error: .*; the skill is served as it was$/),
    ]);
    // Its other files are those of the disk all the while.
    await writeFiles(library.dir, { "a/one/references/y.md": "new" });
    expect((await change(library, "a/one/references/y.md")).updated).toEqual(["skill://a/one/references/y.md"]);
    expect(await textOf(library, "a/one")).toBe(manifest("one"));
    await writeFiles(library.dir, { "a/one/SKILL.md": "broken in another way" });
    expect((await change(library, "a/one/SKILL.md")).isChanged).toBe(false);
    await library.refresh();
    expect(await textOf(library, "a/one")).toBe(manifest("one"));
    await writeFiles(library.dir, { "a/one/SKILL.md": manifest("one", "", "Mended") });
    expect((await change(library, "a/one/SKILL.md")).updated).toEqual(["skill://a/one", "skill://a/one/SKILL.md"]);
    expect(await textOf(library, "a/one")).toBe(manifest("one", "", "Mended"));
    expect(library.problems).toEqual([]);
  });

  it("a skill that was broken from the start, or whose SKILL.md is gone or a link now, is not served", async () => {
    const library = await open({ ...FILES, "a/bad/SKILL.md": "---\nname: [" });
    expect([...library.skills.keys()]).toEqual(["a/one", "a/two", "b/three"]);
    await rm(join(library.dir, "a/one/SKILL.md"));
    await change(library, "a/one/SKILL.md");
    await rm(join(library.dir, "a/two/SKILL.md"));
    await symlink("/etc/hostname", join(library.dir, "a/two/SKILL.md"));
    await change(library, "a/two/SKILL.md");
    expect([...library.skills.keys()]).toEqual(["b/three"]);
  });
});
