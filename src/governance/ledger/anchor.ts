import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Checkpoint, readCheckpoint } from "./checkpoint.ts";
import type { LedgerKeys } from "./keys.ts";

const ANCHOR_FILE = "ledger-head.json";

/** The newest signed head, kept beside the keys: a ledger that ends before it has lost its tail. */
export class Anchor {
  readonly #path: string;
  readonly #keys: LedgerKeys;

  constructor(keyFolder: string, keys: LedgerKeys) {
    this.#path = join(keyFolder, ANCHOR_FILE);
    this.#keys = keys;
  }

  read(): Checkpoint | undefined {
    return existsSync(this.#path) ? readCheckpoint(this.#keys, readFileSync(this.#path, "utf8")) : undefined;
  }

  /** Only forward: other processes move it too. */
  advance(checkpoint: Checkpoint): void {
    if ((this.read()?.seq ?? -1) < checkpoint.seq) this.replace(checkpoint);
  }

  /** Also backwards, after the row of a loss has recorded what this head was. */
  replace(checkpoint: Checkpoint): void {
    const draft = `${this.#path}.${process.pid}`;
    writeFileSync(draft, `${JSON.stringify(checkpoint)}\n`, { mode: 0o600 });
    renameSync(draft, this.#path);
  }
}
