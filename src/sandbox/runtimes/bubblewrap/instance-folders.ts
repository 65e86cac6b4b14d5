import type { Logger } from "../../../telemetry/logger.ts";
import { removeTree } from "../host-files.ts";

const TRY_AGAIN_MS = 10_000;

interface InstanceFoldersOptions {
  readonly logger: Logger;
  readonly remove?: (folder: string) => Promise<void>;
  readonly tryAgainMs?: number;
}

/** Removes the folders of stopped instances. A failed removal is retried while this server runs, and by the next server. */
export class InstanceFolders {
  readonly #options: Required<InstanceFoldersOptions>;
  readonly #left = new Map<string, () => Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor({ logger, remove = removeTree, tryAgainMs = TRY_AGAIN_MS }: InstanceFoldersOptions) {
    this.#options = { logger, remove, tryAgainMs };
  }

  /** How many removals have failed so far. */
  get left(): number {
    return this.#left.size;
  }

  /** Returns whether the folder is gone. `forget` removes its records and is called only then. */
  async remove(folder: string, forget: () => Promise<void>): Promise<boolean> {
    const { logger, remove } = this.#options;
    try {
      await remove(folder);
      await forget();
    } catch (error) {
      if (!this.#left.has(folder))
        logger.error("a workspace could not be removed; it is tried again", { folder, error });
      this.#left.set(folder, forget);
      this.#schedule();
      return false;
    }
    if (this.#left.delete(folder)) logger.info("a workspace that was left is removed", { folder });
    return true;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#isClosed) return;
    this.#timer ??= setTimeout(() => void this.#tryAgain(), this.#options.tryAgainMs).unref();
  }

  async #tryAgain(): Promise<void> {
    for (const [folder, forget] of this.#left) await this.remove(folder, forget);
    this.#timer = undefined;
    if (this.#left.size > 0) this.#schedule();
  }
}
