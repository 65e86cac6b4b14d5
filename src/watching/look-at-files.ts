import { unwatchFile, watchFile } from "node:fs";

const LOOK_MS = 500;

/**
 * Files of settings may be swapped in ways that no event tells of, such as a link above them: they are looked at instead.
 * Keeps no process alive. Gives back how to stop.
 */
export function lookAtFiles(paths: readonly string[], onChange: () => void): () => void {
  // Others may look at the same file: each stops its own look alone.
  const listener = (): void => onChange();
  for (const path of paths) watchFile(path, { interval: LOOK_MS, persistent: false }, listener);
  return () => {
    for (const path of paths) unwatchFile(path, listener);
  };
}
