import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { access, constants, mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { announce, SetupError } from "./announce.mjs";
import { findOnPath } from "./find-on-path.mjs";
import { runCommand } from "./run-command.mjs";

/** What a build depends on. The launcher asks `find` about the same paths: keep the two lists alike. */
const INPUTS = [
  "src",
  "contract",
  "guest",
  "web",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "tsconfig.build.json",
  "scripts/build-guest.mjs",
  "scripts/build-server.mjs",
  "scripts/build-web.mjs",
  "scripts/copy-compiler.mjs",
  "scripts/system-packages.txt",
];

/** @param {string} root */
export function stampPath(root) {
  return join(root, ".cache", "setup.stamp");
}

/** @typedef {{ digest: string, newestMs: number }} Inputs */

/** @param {string} root @returns {Promise<Inputs>} */
export async function readInputs(root) {
  const hash = createHash("sha256");
  let newestMs = 0;
  /** @param {string} path */
  const visit = async (path) => {
    const found = await stat(join(root, path));
    newestMs = Math.max(newestMs, found.mtimeMs);
    if (found.isDirectory()) {
      for (const name of (await readdir(join(root, path))).sort()) await visit(`${path}/${name}`);
    } else {
      const content = await readFile(join(root, path));
      hash.update(`${path} ${content.length}\n`).update(content);
    }
  };
  for (const path of INPUTS) await visit(path);
  return { digest: hash.digest("hex"), newestMs };
}

/**
 * Compiles into a folder beside `dist` and then swaps: a server that starts meanwhile finds the old build or the new one.
 * @param {string} root
 * @param {Inputs} inputs
 */
export async function ensureBuild(root, inputs) {
  const main = join(root, "dist", "main.js");
  if (existsSync(main) && (await stampedDigest(root)) === inputs.digest) return;
  announce("building");
  const fresh = join(root, ".cache", `dist-${process.pid}`);
  const old = join(root, ".cache", `old-${process.pid}`);
  await mkdir(fresh, { recursive: true });
  try {
    const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
    // Kept from build to build, so that the compiler looks only at what has changed.
    const types = join(root, ".cache", "types");
    const info = join(root, ".cache", "types.tsbuildinfo");
    if (!existsSync(join(types, "src", "index.d.ts"))) await rm(info, { force: true });
    const incremental = ["--incremental", "--tsBuildInfoFile", info];
    const args = [compiler, "-p", "tsconfig.build.json", "--emitDeclarationOnly", "--outDir", types, ...incremental];
    if (!(await runCommand(process.execPath, args, { cwd: root }))) {
      throw new SetupError("the build failed; the compiler's messages are above");
    }
    // They need packages, which are there only now.
    const { copyPublicTypes } = await import("./public-types.mjs");
    await copyPublicTypes(join(types, "src"), fresh);
    const { buildServer } = await import("../build-server.mjs");
    const { buildGuest } = await import("../build-guest.mjs");
    const { buildWeb } = await import("../build-web.mjs");
    const { copyCompiler } = await import("../copy-compiler.mjs");
    await copyCompiler(root, fresh);
    const { licensesOf } = await import("../licenses.mjs");
    const bundles = [await buildServer(root, fresh), await buildGuest(join(fresh, "guest"))];
    await writeFile(join(fresh, "licenses.txt"), await licensesOf(bundles, root));
    await buildWeb(join(fresh, "dashboard"), root);
    if (existsSync(join(root, "dist"))) await rename(join(root, "dist"), old);
    await rename(fresh, join(root, "dist"));
  } finally {
    await rm(fresh, { recursive: true, force: true });
    await rm(old, { recursive: true, force: true });
  }
}

/**
 * Says that the clone is set up. The launcher compares the first line with the node on its own path, and takes every input newer than this file for a change;
 * so its time is that of the newest input, which also holds for files from the future.
 * @param {string} root
 * @param {Inputs} inputs
 */
export async function writeStamp(root, inputs) {
  const path = stampPath(root);
  const fresh = `${path}.${process.pid}`;
  await mkdir(join(root, ".cache"), { recursive: true });
  await writeFile(fresh, `${findOnPath("node") ?? process.execPath}\n${inputs.digest}\n`);
  const time = new Date(Math.ceil(inputs.newestMs) + 1);
  await utimes(fresh, time, time);
  await rename(fresh, path);
}

/** @param {string} root */
export async function isWritable(root) {
  return await access(root, constants.W_OK).then(
    () => true,
    () => false,
  );
}

/** @param {string} root */
export async function stampedDigest(root) {
  const text = await readFile(stampPath(root), "utf8").catch(() => "");
  return text.split("\n")[1];
}
