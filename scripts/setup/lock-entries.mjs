export const LOCK_FILES = [
  "package-lock.json",
  "bench/package-lock.json",
  "test/clients/package-lock.json",
  "test/conformance/runner/package-lock.json",
  "test/nodes/package-lock.json",
  "test/vm/microsandbox/package-lock.json",
];

/**
 * @typedef {{
 *   version?: string, integrity?: string, optional?: boolean, link?: boolean,
 *   os?: string[], cpu?: string[], libc?: string[],
 * }} LockedPackage
 */

/** @param {string} path @returns {string} */
export function nameOf(path) {
  return path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
}

/**
 * Paths of packages that npm would install without comparing them with anything.
 * @param {Record<string, LockedPackage>} packages @returns {string[]}
 */
export function withoutIntegrity(packages) {
  return Object.entries(packages)
    .filter(([path, locked]) => path.includes("node_modules/") && locked.link !== true)
    .filter(([, locked]) => locked.integrity === undefined)
    .map(([path]) => path);
}

/**
 * Whether npm installs it on such a machine. Which C library a machine has does not count: both are taken for possible.
 * @param {LockedPackage} locked @param {{ os: string, cpu: string }} machine
 */
export function isFor({ os, cpu }, machine) {
  return (os === undefined || os.includes(machine.os)) && (cpu === undefined || cpu.includes(machine.cpu));
}
