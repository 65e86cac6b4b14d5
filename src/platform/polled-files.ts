import { fileState, type FileStates } from "../config/file-state.ts";

const LOOK_MS = 500;
/** A file that was just written may be incomplete, and half a policy can be a valid one that allows more. */
const SETTLE_MS = 100;

/**
 * Files of settings may be replaced in ways that cause no event, such as a changed link above them, so they are polled.
 * Does not keep the process alive.
 */
export class PolledFiles {
  readonly #onChange: () => void;
  readonly #stops = new Map<string, () => void>();

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /**
   * Polls exactly these files, and reports when one is not as it was when it was read. Files that are polled already
   * keep their state.
   */
  look(read: FileStates): void {
    for (const [path, stop] of this.#stops) {
      if (read.has(path)) continue;
      stop();
      this.#stops.delete(path);
    }
    for (const [path, state] of read) {
      if (!this.#stops.has(path)) this.#stops.set(path, lookAtFile(path, state, this.#onChange));
    }
  }

  stop(): void {
    this.look(new Map());
  }
}

function lookAtFile(path: string, read: string, onChange: () => void): () => void {
  let told = read;
  let last = read;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const look = async (): Promise<void> => {
    const state = await fileState(path);
    if (isStopped) return;
    const isNew = state !== told;
    const isWhole = state === last;
    timer = setTimeout(() => void look(), isNew && !isWhole ? SETTLE_MS : LOOK_MS).unref();
    last = state;
    if (!isNew || !isWhole) return;
    told = state;
    onChange();
  };
  void look();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
