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

/** The same for files whose paths may change while they are looked at. */
export class FilesInView {
  readonly #onChange: () => void;
  #paths: readonly string[] = [];
  #stop: (() => void) | undefined;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Looks at these and no others. Those that it looks at already it does not lose sight of. */
  look(paths: readonly string[]): void {
    if (this.#stop !== undefined && JSON.stringify(paths) === JSON.stringify(this.#paths)) return;
    const stopBefore = this.#stop;
    this.#paths = paths;
    this.#stop = lookAtFiles(paths, this.#onChange);
    stopBefore?.();
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}
