import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, rename } from "node:fs/promises";
import path from "node:path";
import { runProgram } from "./run-program.ts";

const CACHE = path.join(import.meta.dirname, "../.cache/bench");
const SOURCES = ["/etc/apt/sources.list", "/etc/apt/sources.list.d"];

/** A small Debian with Python as a tar file, made once, from the mirrors that the machine itself uses. */
export async function baseImage(log: (line: string) => void): Promise<string> {
  const release = await readFile("/etc/os-release", "utf8");
  const suite = /^VERSION_CODENAME=(\w+)$/m.exec(release)?.[1];
  if (suite === undefined || !/^ID=debian$/m.test(release)) throw new Error("its image is made on Debian only");
  const image = path.join(CACHE, `docker-${suite}-${process.arch}.tar`);
  if (existsSync(image)) return image;
  log("docker: making the image, once; it takes about a minute");
  await mkdir(CACHE, { recursive: true });
  // A run that is broken off leaves no half image under the name that counts.
  const fresh = path.join(CACHE, `fresh-${process.pid}.tar`);
  const sources = await sourcesOf(suite);
  await runProgram("mmdebstrap", ["--quiet", "--variant=minbase", "--include=python3", suite, fresh, ...sources]);
  await rename(fresh, image);
  return image;
}

/** The machine's own lists that name the suite. */
async function sourcesOf(suite: string): Promise<readonly string[]> {
  const named = new RegExp(`^(Suites:(.*\\s)?|deb\\s.*\\s)${suite}(\\s|$)`, "m");
  const [list = "", folder = ""] = SOURCES;
  const parts = await readdir(folder).catch(() => []);
  const files = [
    list,
    ...parts.filter((name) => /\.(list|sources)$/.test(name)).map((name) => path.join(folder, name)),
  ];
  const found: string[] = [];
  for (const file of files) {
    if (named.test(await readFile(file, "utf8").catch(() => ""))) found.push(file);
  }
  if (found.length === 0) throw new Error(`no list of apt names ${suite}`);
  return found;
}
