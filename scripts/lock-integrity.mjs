import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { LOCK_FILES, nameOf, withoutIntegrity } from "./setup/lock-entries.mjs";

/**
 * Adds the integrity that lock files lack, as the registry gives it. A registry mirror may not have the binaries for other systems:
 * those stay without one and are named, and set-up warns on these systems until this has run where the registry has them.
 */
const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const run = promisify(execFile);

/** @param {string} name @param {string} version @returns {Promise<string | undefined>} */
async function integrityOf(name, version) {
  try {
    const { stdout } = await run("npm", ["view", `${name}@${version}`, "dist.integrity"]);
    return /^sha512-[\w+/]+=*$/.exec(stdout.trim())?.[0];
  } catch {
    // The registry does not have it.
    return undefined;
  }
}

let missing = 0;
for (const path of LOCK_FILES) {
  const file = join(ROOT, path);
  /** @type {{ packages: Record<string, import("./setup/lock-entries.mjs").LockedPackage> }} */
  const lock = JSON.parse(await readFile(file, "utf8"));
  for (const key of withoutIntegrity(lock.packages)) {
    const { version = "", ...rest } = lock.packages[key] ?? {};
    const integrity = await integrityOf(nameOf(key), version);
    if (integrity !== undefined) lock.packages[key] = { version, ...sortedWith({ ...rest, integrity }) };
    else {
      missing += 1;
      process.stderr.write(`${path}: the registry has no ${nameOf(key)}@${version}\n`);
    }
  }
  await writeFile(file, `${JSON.stringify(lock, null, 2)}\n`);
}
if (missing > 0) process.exitCode = 1;

/** @param {Record<string, unknown>} fields */
function sortedWith(fields) {
  return Object.fromEntries(Object.entries(fields).sort(([a], [b]) => a.localeCompare(b, "en")));
}
