import { stateOf } from "../platform/watch-files.ts";

/** What files were when they were read, handlers and what they import. */
export class FileStates {
  readonly #states = new Map<string, string>();

  note(files: readonly string[]): void {
    for (const file of files) this.#states.set(file, stateOf(file));
  }

  forget(file: string): void {
    this.#states.delete(file);
  }

  has(file: string): boolean {
    return this.#states.has(file);
  }

  hasChanged(file: string): boolean {
    return stateOf(file) !== this.#states.get(file);
  }

  changed(): readonly string[] {
    return [...this.#states.keys()].filter((file) => this.hasChanged(file));
  }
}
