import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The file that a shell would run for this name. @param {string} command @returns {string | undefined} */
export function findOnPath(command) {
  return (process.env["PATH"] ?? "")
    .split(delimiter)
    .map((folder) => join(folder, command))
    .find(isExecutableFile);
}

/** @param {string} path */
function isExecutableFile(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    // Not in this folder of the path.
    return false;
  }
}
