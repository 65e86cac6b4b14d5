// The licences of packages that are bundled: they are part of what is published.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** One text for all packages in the bundles. @param {readonly import("esbuild").Metafile[]} bundles @param {string} root */
export async function licensesOf(bundles, root) {
  const inputs = bundles.flatMap((bundle) => Object.keys(bundle.inputs));
  const folders = new Set(inputs.flatMap((path) => /.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? []));
  const parts = new Map();
  for (const folder of folders) {
    const place = join(root, folder.slice(folder.indexOf("node_modules")));
    const { name, version, license } = JSON.parse(await readFile(join(place, "package.json"), "utf8"));
    const file = (await readdir(place)).find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined && license !== "MIT") throw new Error(`${name} is in the bundle and has no licence file`);
    const text = file === undefined ? `License: ${license}` : (await readFile(join(place, file), "utf8")).trim();
    parts.set(`${name} ${version}`, text);
  }
  const sorted = [...parts].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([title, text]) => `${title}\n\n${text}\n`).join(`\n${"-".repeat(79)}\n\n`);
}
