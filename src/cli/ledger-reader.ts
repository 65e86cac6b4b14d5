import { loadConfig } from "../config/load.ts";
import { isOwlError } from "../errors/owl-error.ts";
import { FILTER_NAMES, filterFromText } from "../governance/ledger/filter-from-text.ts";
import type { LedgerPlace } from "../governance/ledger/open-store.ts";
import type { LedgerFilter } from "../governance/ledger/query.ts";
import type { LedgerReader } from "../governance/ledger/store.ts";
import { type FlagValues, toLoadOptions } from "./config-flags.ts";
import { UsageError } from "./usage-error.ts";

/** Opens the ledger that the flags lead to, for as long as `act` takes. */
export async function withLedger<T>(
  flags: FlagValues,
  act: (reader: LedgerReader, place: LedgerPlace) => Promise<T>,
): Promise<T> {
  const { config } = await loadConfig(toLoadOptions(flags));
  const { openReader } = await import("../governance/ledger/open-store.ts");
  const place: LedgerPlace = { config, dataFolder: config.sandbox.root };
  const reader = await openReader(place);
  try {
    return await act(reader, place);
  } finally {
    await reader.close();
  }
}

export function filterFromFlags(flags: FlagValues): LedgerFilter {
  const text = Object.fromEntries(
    FILTER_NAMES.flatMap((name) => (typeof flags[name] === "string" ? [[name, flags[name]]] : [])),
  );
  try {
    return filterFromText(text, Date.now());
  } catch (error) {
    if (isOwlError(error)) throw new UsageError(`--${error.message}`);
    throw error;
  }
}

export function wholeNumber(name: string, value: unknown, max: number): number {
  const text = String(value);
  const number = Number(text);
  if (/^\d{1,15}$/.test(text) && number >= 1 && number <= max) return number;
  throw new UsageError(`${name} ${text}: give a whole number from 1 to ${max}`);
}
