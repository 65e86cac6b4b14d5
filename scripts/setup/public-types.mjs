import { readdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";

const RELATIVE = /(?:from|import\() ?"(\.{1,2}\/[^"]+)\.ts"/g;

/**
 * The compiler writes types for every file. Users see those of `index.d.ts` and of what it names; the rest would be a third of all
 * files of the package.
 * @param {string} folder
 */
export async function keepPublicTypes(folder) {
  const wanted = new Set();
  /** @param {string} path */
  const visit = async (path) => {
    if (wanted.has(path)) return;
    wanted.add(path);
    const text = await readFile(path, "utf8");
    for (const [, name = ""] of text.matchAll(RELATIVE)) await visit(join(dirname(path), `${name}.d.ts`));
  };
  await visit(join(folder, "index.d.ts"));
  for (const name of await readdir(folder, { recursive: true })) {
    const path = join(folder, name);
    if (name.endsWith(".d.ts") && !wanted.has(path)) await rm(path);
  }
}
