import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { announce, mayInstall, SetupError } from "./announce.mjs";
import { findOnPath } from "./find-on-path.mjs";
import { isFor, nameOf, withoutIntegrity } from "./lock-entries.mjs";
import { runCommand } from "./run-command.mjs";

/** @typedef {import("./lock-entries.mjs").LockedPackage} LockedPackage */

/**
 * Makes `node_modules` of a folder what its lock file says; does nothing when it is already so.
 * @param {string} root
 * @param {string} folder
 */
export async function ensureDependencies(root, folder) {
  if (await isInstalled(folder)) return;
  const place = relative(root, folder) || ".";
  if (!mayInstall) {
    throw new SetupError(`npm packages are missing in ${place} and OWLCLAW_NO_INSTALL forbids installing them.
Run this, then try again: npm ci --prefix ${folder}`);
  }
  if (findOnPath("npm") === undefined)
    throw new SetupError("npm is needed to install packages, and it is not on the PATH");
  await warnOfUnverifiable(folder, place);
  announce(`installing npm packages in ${place}`);
  // No package here needs its install script, and what does not run cannot do harm.
  const args = [
    "ci",
    "--include=dev",
    "--include=optional",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
  ];
  if (!(await runCommand("npm", args, { cwd: folder }))) {
    throw new SetupError(`npm ci failed in ${place}; its own message is above`);
  }
}

/**
 * npm installs a package without integrity unseen. Only binaries for systems other than Linux on x64 and arm64 may lack it.
 * @param {string} folder @param {string} place
 */
async function warnOfUnverifiable(folder, place) {
  const packages = (await packagesOf(join(folder, "package-lock.json"))) ?? {};
  const machine = { os: process.platform, cpu: process.arch };
  const unverifiable = withoutIntegrity(packages).filter((path) => isFor(packages[path] ?? {}, machine));
  if (unverifiable.length === 0) return;
  announce(`warning: the lock file in ${place} has no integrity for ${unverifiable.map(nameOf).join(", ")}`);
  announce("they are installed as the registry sends them; node scripts/lock-integrity.mjs adds it");
}

/**
 * npm keeps a second lock file of what it really installed. Comparing the two also sees what a plain `npm install` did.
 * @param {string} folder
 */
async function isInstalled(folder) {
  const [wanted, found] = await Promise.all([
    packagesOf(join(folder, "package-lock.json")),
    packagesOf(join(folder, "node_modules", ".package-lock.json")),
  ]);
  if (found === undefined) return false;
  if (wanted === undefined) throw new SetupError(`${join(folder, "package-lock.json")} cannot be read`);
  return Object.entries(wanted).every(([path, locked]) => {
    if (path === "" || locked.link === true) return true;
    const installed = found[path];
    return installed === undefined ? locked.optional === true : installed.version === locked.version;
  });
}

/** @param {string} path @returns {Promise<Record<string, LockedPackage> | undefined>} */
async function packagesOf(path) {
  try {
    return JSON.parse(await readFile(path, "utf8")).packages;
  } catch {
    // Missing or half-written: both mean that nothing usable is installed.
    return undefined;
  }
}
