import { copyFile, mkdir, readFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

const RELATIVE = /(?:from|import\() ?"(\.{1,2}\/[^"]+)\.ts"/g;

/**
 * The compiler writes types for every file. Users see those of `index.d.ts` and of what it names; the rest would be a third of all
 * files of the package.
 * @param {string} compiled
 * @param {string} folder
 */
export async function copyPublicTypes(compiled, folder) {
  const copied = new Set();
  /** @param {string} path */
  const visit = async (path) => {
    if (copied.has(path)) return;
    copied.add(path);
    const target = join(folder, relative(compiled, path));
    await mkdir(dirname(target), { recursive: true });
    await copyFile(path, target);
    const text = await readFile(path, "utf8");
    for (const [, name = ""] of text.matchAll(RELATIVE)) await visit(join(dirname(path), `${name}.d.ts`));
  };
  await visit(join(compiled, "index.d.ts"));
}
