// Bundles the dashboard: node scripts/build-web.mjs [FOLDER], default dist/dashboard. Names carry a digest of what is inside.
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { build } from "esbuild";
import { licensesOf } from "./licenses.mjs";

const ROOT = join(import.meta.dirname, "..");
/** Where the server serves the folder. */
const PUBLIC_PATH = "/dashboard/assets";
const ENTRIES = { main: "src/main.tsx", theme: "src/theme-first.ts", style: "src/styles/main.css", icon: "icon.svg" };

/** @param {string} folder @param {string} [root] */
export async function buildWeb(folder, root = ROOT) {
  const web = join(root, "web");
  const { metafile } = await build({
    absWorkingDir: web,
    entryPoints: ENTRIES,
    outdir: join(folder, "assets"),
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    bundle: true,
    splitting: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: ["chrome123", "firefox121", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".svg": "copy" },
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });
  const html = await readFile(join(web, "index.html"), "utf8");
  await writeFile(join(folder, "index.html"), withNames(html, metafile, folder, web));
  await writeFile(join(folder, "licenses.txt"), await licensesOf([metafile], root));
}

/**
 * Puts the names that the bundle chose into the page.
 * @param {string} html
 * @param {import("esbuild").Metafile} metafile
 * @param {string} folder
 * @param {string} web
 */
function withNames(html, metafile, folder, web) {
  const byEntry = new Map(
    Object.entries(metafile.outputs).flatMap(([path, { entryPoint }]) =>
      entryPoint === undefined ? [] : [[entryPoint, relative(join(folder, "assets"), join(web, path))]],
    ),
  );
  return html.replaceAll(/\{\{(\w+)\}\}/g, (_, /** @type {keyof typeof ENTRIES} */ name) => {
    const file = byEntry.get(ENTRIES[name]) ?? iconName(metafile, name);
    if (file === undefined) throw new Error(`index.html names ${name}, which the bundle does not have`);
    return `${PUBLIC_PATH}/${file}`;
  });
}

/** What is only copied has no entry of its own in the list. @param {import("esbuild").Metafile} metafile @param {string} name */
function iconName(metafile, name) {
  const pattern = new RegExp(`/(${name}-\\w+\\.svg)$`);
  return Object.keys(metafile.outputs)
    .map((path) => pattern.exec(path)?.[1])
    .find((found) => found !== undefined);
}

if (process.argv[1] === import.meta.filename) {
  const folder = join(ROOT, process.argv[2] ?? join("dist", "dashboard"));
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await buildWeb(folder);
}
