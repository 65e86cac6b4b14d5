import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { build } from "esbuild";

const PROJECT = resolve(import.meta.dirname, "../..");
const REQUIRE = 'import{createRequire as __make}from"node:module";const require=__make(import.meta.url);';

/** What a machine, or this one, runs servers from: the built server with its packages, Node, and scripts of the tests. */
export interface Job {
  /** Bundled, by the name they get. */
  readonly scripts: Readonly<Record<string, string>>;
  readonly texts: Readonly<Record<string, string>>;
  readonly node: string;
  /** More files and folders, by name. */
  readonly more?: Readonly<Record<string, string>>;
}

export async function makeJobFolder(folder: string, { scripts, texts, node, more = {} }: Job): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const path of ["package.json", "dist", ...neededPackages()])
    if (existsSync(join(PROJECT, path))) await cp(join(PROJECT, path), join(folder, path), { recursive: true });
  for (const [name, path] of Object.entries(more))
    await cp(path, join(folder, name), { recursive: true, verbatimSymlinks: true });
  copyFileSync(node, join(folder, "node"));
  for (const [name, text] of Object.entries(texts)) await writeFile(join(folder, name), text);
  for (const [name, script] of Object.entries(scripts))
    await build({
      entryPoints: [script],
      outfile: join(folder, name),
      bundle: true,
      platform: "node",
      format: "esm",
      banner: { js: REQUIRE },
    });
}

/** Folders of the packages that the published server installs. */
function neededPackages(): string[] {
  const { packages } = JSON.parse(readFileSync(join(PROJECT, "package-lock.json"), "utf8")) as {
    packages: Record<string, { dev?: boolean; link?: boolean }>;
  };
  return Object.entries(packages).flatMap(([path, { dev, link }]) =>
    path.startsWith("node_modules/") && dev !== true && link !== true ? [path] : [],
  );
}
