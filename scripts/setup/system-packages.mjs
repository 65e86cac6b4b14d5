import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { announce, mayInstall, SetupError } from "./announce.mjs";
import { findOnPath } from "./find-on-path.mjs";
import { runCommand } from "./run-command.mjs";

/** @typedef {{ stages: readonly string[], when: string, command: string, name: string, purpose: string }} SystemPackage */

/**
 * Installs the system packages of the given stages where it may: as root, or with a sudo that does not ask, on Debian and its kin. Services stay
 * as they are.
 * Elsewhere it prints the command to run and goes on, unless a package is needed now.
 * @param {string} root
 * @param {readonly string[]} stages
 */
export async function ensureSystemPackages(root, stages) {
  let missing = missingPackages(root, stages);
  if (missing.length === 0) return;
  const asRoot = process.getuid?.() === 0;
  if (mayInstall && isDebian() && (asRoot || (await hasQuietSudo(root)))) {
    await install(root, missing, asRoot ? [] : ["sudo", "-n"]);
    missing = missing.filter((entry) => !isThere(entry.command));
  }
  if (missing.length === 0) return;
  for (const { command, purpose } of missing) announce(`missing: ${command} (${purpose})`);
  const fix = `install with: ${asRoot ? "" : "sudo "}apt-get install -y ${missing.map((entry) => entry.name).join(" ")}`;
  if (missing.some((entry) => entry.when === "now")) throw new SetupError(`it cannot go on without these. ${fix}`);
  announce(fix);
}

/** @param {string} root @param {readonly string[]} stages */
export function missingPackages(root, stages) {
  return readPackages(root).filter(
    (entry) => entry.stages.some((stage) => stages.includes(stage)) && !isThere(entry.command),
  );
}

/** @param {string} root @returns {SystemPackage[]} */
function readPackages(root) {
  const lines = readFileSync(join(root, "scripts", "system-packages.txt"), "utf8").split("\n");
  return lines
    .filter((line) => line.trim() !== "" && !line.startsWith("#"))
    .map((line) => {
      const [stage = "", when = "", command = "", name = "", ...purpose] = line.trim().split(/\s+/);
      return { stages: stage.split(","), when, command, name, purpose: purpose.join(" ") };
    });
}

/** @param {string} root @param {readonly SystemPackage[]} missing @param {readonly string[]} prefix */
async function install(root, missing, prefix) {
  const names = missing.map((entry) => entry.name);
  announce(`installing system packages: ${names.join(" ")}`);
  const script = join(import.meta.dirname, "install-packages.sh");
  const [command = "bash", ...args] = [...prefix, "bash", script, ...names];
  await runCommand(command, args, { cwd: root });
}

/** @param {string} command */
function isThere(command) {
  return command.startsWith("/") ? existsSync(command) : findOnPath(command) !== undefined;
}

export function isDebian() {
  try {
    return (
      /^ID(_LIKE)?=.*(debian|ubuntu)/m.test(readFileSync("/etc/os-release", "utf8")) &&
      findOnPath("apt-get") !== undefined
    );
  } catch {
    // No such file: another system.
    return false;
  }
}

/** @param {string} root */
async function hasQuietSudo(root) {
  return findOnPath("sudo") !== undefined && (await runCommand("sudo", ["-n", "true"], { cwd: root }));
}
