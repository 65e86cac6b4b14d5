import type { LedgerKeys } from "../ledger/keys.ts";
import type { Settlement } from "../ledger/store.ts";
import { isSealed, rowOfDead, type Start } from "./admit-batch.ts";

/**
 * How a call of a dead process ends: with the row that it left, and the cost that was reserved. One without a row had not
 * begun to run. A start that this server's key did not seal puts nothing into the ledger.
 */
export function settlementOfDead(keys: LedgerKeys, start: Start): Settlement {
  const draft = isSealed(keys, start) ? rowOfDead(start) : undefined;
  return draft === undefined ? { call: start.call } : { call: start.call, draft, costMicros: start.micros };
}
