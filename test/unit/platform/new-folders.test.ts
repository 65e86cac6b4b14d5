import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { watch } from "chokidar";
import { expect, it, onTestFinished, vi } from "vitest";
import { NewFolders } from "../../../src/platform/new-folders.ts";

it("what the watcher has missed in a new folder is found, watched from then on, and nothing else is told", async () => {
  const folder = await mkdtemp(join(tmpdir(), "owlclaw-new-folders-"));
  // A watcher that looks into no folder misses all that is in new ones.
  const watcher = watch(folder, { ignoreInitial: true, depth: 0 });
  onTestFinished(async () => {
    await watcher.close();
    await rm(folder, { recursive: true, force: true });
  });
  await new Promise<void>((resolve) => {
    watcher.once("ready", resolve);
  });
  const made = join(folder, "made");
  await mkdir(join(made, "deeper"), { recursive: true });
  await mkdir(join(made, "node_modules"));
  await writeFile(join(made, "one.ts"), "1");
  await writeFile(join(made, "deeper", "two.ts"), "2");
  const found = new Set<string>();
  const newFolders = new NewFolders(watcher, (path) => found.add(path));
  onTestFinished(() => newFolders.close());
  newFolders.add(made);
  await vi.waitFor(() => expect(found).toContain(join(made, "deeper", "two.ts")), 20_000);
  expect(found).toEqual(new Set(["one.ts", "deeper", "deeper/two.ts"].map((name) => join(made, name))));
  const changed: string[] = [];
  watcher.on("change", (path) => changed.push(path));
  await vi.waitFor(
    async () => {
      await writeFile(join(made, "one.ts"), `${changed.length} ${performance.now()}`);
      expect(changed).toContain(join(made, "one.ts"));
    },
    { timeout: 20_000, interval: 200 },
  );
});
