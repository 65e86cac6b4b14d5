import { writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type FileWatch, watchFiles, type WatchOptions } from "../../../src/platform/watch-files.ts";

/** A busy machine tells of a change late. */
const PATIENT = { timeout: 20_000 };

describe("watchFiles", () => {
  let folder: string;
  let watches: FileWatch[];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "owlclaw-watch-"));
    watches = [];
  });

  afterEach(async () => {
    await Promise.all(watches.map((watch) => watch.close()));
    await rm(folder, { recursive: true, force: true });
  });

  async function watching(options: WatchOptions) {
    const changes: ReadonlySet<string>[] = [];
    const watch = watchFiles(options, (files) => changes.push(files));
    watches.push(watch);
    await watch.ready;
    return { watch, changes, seen: () => new Set(changes.flatMap((files) => [...files])) };
  }

  it("tells of a file that was made, changed, renamed and removed", async () => {
    const { changes, seen } = await watching({ paths: [folder] });
    const file = join(folder, "a.txt");
    await writeFile(file, "one");
    await vi.waitFor(() => expect(seen()).toContain(file), PATIENT);
    changes.length = 0;
    await writeFile(file, "two, and longer");
    await vi.waitFor(() => expect(seen()).toContain(file), PATIENT);
    changes.length = 0;
    const other = join(folder, "b.txt");
    await rename(file, other);
    await vi.waitFor(() => expect([...seen()].sort()).toEqual([file, other]), PATIENT);
    changes.length = 0;
    await rm(other);
    await vi.waitFor(() => expect(seen()).toContain(other), PATIENT);
  });

  it("tells of a change that comes while somebody still reads the one before", async () => {
    const file = join(folder, "a.txt");
    await writeFile(file, "one");
    let told = 0;
    const watch = watchFiles({ paths: [folder], settleMs: 10 }, () => {
      told += 1;
      if (told === 1) writeFileSync(file, "three");
    });
    watches.push(watch);
    await watch.ready;
    await writeFile(file, "two");
    await vi.waitFor(() => expect(told).toBeGreaterThanOrEqual(2), PATIENT);
  });

  it("watches what is added later", async () => {
    const { watch, seen } = await watching({ paths: [join(folder, "one")] });
    const file = join(folder, "two.txt");
    await writeFile(file, "one");
    watch.add([file]);
    await vi.waitFor(async () => {
      await writeFile(file, `${Math.random()}`);
      expect(seen()).toContain(file);
    }, 20_000);
  });

  it("tells of every file of many that are made at once", async () => {
    const { seen } = await watching({ paths: [folder], settleMs: 300 });
    const files = Array.from({ length: 50 }, (_, index) => join(folder, `${index}.txt`));
    await Promise.all(files.map((file) => writeFile(file, "x")));
    await vi.waitFor(() => expect([...seen()].sort()).toEqual(files.sort()), PATIENT);
  });

  it("tells of a disk that never is quiet", async () => {
    const { changes } = await watching({ paths: [folder], settleMs: 20 });
    let count = 0;
    const written: Promise<void>[] = [];
    const write = (): void => void written.push(writeFile(join(folder, `${count++ % 5}.txt`), `${count}`));
    const writer = setInterval(write, 5);
    try {
      await vi.waitFor(() => expect(changes.length).toBeGreaterThan(0), PATIENT);
    } finally {
      clearInterval(writer);
      await Promise.all(written);
    }
  });

  it("watches the folders of a glob and hears only of its extensions, also in folders made later", async () => {
    const { seen } = await watching({ paths: [join(folder, "src/**/*.{ts,py}")] });
    await mkdir(join(folder, "src/deep/deeper"), { recursive: true });
    await writeFile(join(folder, "src/deep/deeper/notes.md"), "x");
    await writeFile(join(folder, "src/deep/deeper/handler.py"), "x");
    await vi.waitFor(() => expect(seen()).toContain(join(folder, "src/deep/deeper/handler.py")), PATIENT);
    expect([...seen()].filter((file) => file.endsWith(".md"))).toEqual([]);
  });

  it("watches a single file that does not exist yet", async () => {
    const file = join(folder, "later.txt");
    const { seen } = await watching({ paths: [file] });
    await writeFile(join(folder, "neighbour.txt"), "x");
    await writeFile(file, "x");
    await vi.waitFor(() => expect(seen()).toEqual(new Set([file])), PATIENT);
  });

  it("neither follows links out of the folder nor looks into node_modules", async () => {
    const outside = join(folder, "outside");
    const inside = join(folder, "inside");
    await mkdir(outside);
    await mkdir(join(inside, "node_modules"), { recursive: true });
    await symlink(outside, join(inside, "link"));
    const { seen } = await watching({ paths: [inside] });
    await writeFile(join(outside, "secret.txt"), "x");
    await writeFile(join(inside, "node_modules/package.json"), "x");
    await writeFile(join(inside, "last.txt"), "x");
    await vi.waitFor(() => expect(seen()).toContain(join(inside, "last.txt")), PATIENT);
    expect([...seen()].filter((file) => /secret|package/.test(file))).toEqual([]);
  });

  it("says nothing after it was closed, and may be closed twice", async () => {
    const { watch, changes } = await watching({ paths: [folder], settleMs: 200 });
    await writeFile(join(folder, "a.txt"), "x");
    await watch.close();
    await watch.close();
    const { seen } = await watching({ paths: [folder] });
    await writeFile(join(folder, "b.txt"), "x");
    await vi.waitFor(() => expect(seen()).toContain(join(folder, "b.txt")), PATIENT);
    expect(changes).toEqual([]);
  });
});
