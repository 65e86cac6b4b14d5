import type { Alerts } from "../../telemetry/alerts.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { type Checkpoint, formatHead, readCheckpoint } from "./checkpoint.ts";
import type { LedgerHead } from "./ledger.ts";
import { describeLoss, lossDraft, type OpenLoss } from "./loss.ts";
import type { LedgerStore } from "./store.ts";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { LedgerKeys } from "./keys.ts";

export interface AnchoredParts {
  readonly store: LedgerStore;
  readonly anchor: Anchor;
  readonly openLoss: OpenLoss;
  readonly logger: Logger;
  readonly alerts: Alerts;
}

/**
 * Compares the ledger with the newest signed head, and records a loss when the ledger does not have that row. The
 * anchor is read first: other processes move it after they have written. Returns the head of the ledger.
 */
export async function compareWithAnchor(parts: AnchoredParts): Promise<LedgerHead> {
  const { store, anchor } = parts;
  const known = anchor.read();
  const { head } = await store.append([]);
  if (known === undefined) return head;
  const isLost = known.seq > head.seq || ((await store.hashAt(known.seq)) ?? known.hash) !== known.hash;
  return isLost ? recordLoss(parts, known, head) : head;
}

/** The ledger continues from the rows that it has, with a row that records what was lost. */
async function recordLoss(parts: AnchoredParts, known: Checkpoint, found: LedgerHead): Promise<LedgerHead> {
  const { store, anchor, openLoss, logger, alerts } = parts;
  const { seq, hash, time } = known;
  const loss = { known: { seq, hash }, found, signedAt: time };
  const now = Date.now();
  const { seqs } = await store.append([lossDraft(loss)]);
  const row = seqs[0] ?? found.seq + 1;
  openLoss.mark({ seq: row, time: now });
  const { head, checkpoints } = await store.seal();
  for (const checkpoint of checkpoints) anchor.replace(checkpoint);
  const facts = { known: formatHead(known), found: formatHead(found), row };
  const message = `The ledger has lost rows: ${describeLoss(loss, row)}.`;
  logger.error(message, facts);
  alerts.send({ event: "ledger_tail_lost", severity: "error", message, facts });
  return head;
}

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
