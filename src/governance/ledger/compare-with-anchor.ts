import type { Alerts } from "../../telemetry/alerts.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Anchor } from "./anchor.ts";
import { type Checkpoint, formatHead } from "./checkpoint.ts";
import type { LedgerHead } from "./ledger.ts";
import { describeLoss, lossDraft, type OpenLoss } from "./loss.ts";
import type { LedgerStore } from "./store.ts";

export interface AnchoredParts {
  readonly store: LedgerStore;
  readonly anchor: Anchor;
  readonly openLoss: OpenLoss;
  readonly logger: Logger;
  readonly alerts: Alerts;
}

/**
 * Compares the ledger with the newest signed head, and records a loss where it does not have that row. The anchor is
 * read first: other processes move it after they have written. Gives the head of the ledger.
 */
export async function compareWithAnchor(parts: AnchoredParts): Promise<LedgerHead> {
  const { store, anchor } = parts;
  const known = anchor.read();
  const { head } = await store.append([]);
  if (known === undefined) return head;
  const isLost = known.seq > head.seq || ((await store.hashAt(known.seq)) ?? known.hash) !== known.hash;
  return isLost ? recordLoss(parts, known, head) : head;
}

/** The ledger continues from what is there, with a row that says what was lost. */
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
